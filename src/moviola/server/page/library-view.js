// The library's view is loaded when it is first wanted: most visits only search.

import { notify } from "./notices.js";
import { t } from "./language.js";
import { view } from "./store.js";

/** @type {Promise<typeof import("./library/library.js")> | null} */
let loading = null;

/** The view, which stands in the page once this is fulfilled. */
async function libraryView() {
  loading ??= import("./library/library.js").then((loaded) => { loaded.startLibrary(); return loaded; });
  try {
    return await loading;
  } catch (error) {
    loading = null; // to be tried again: the server was away just now
    notify(t("The library cannot be shown: {why}", { why: error instanceof Error ? error.message : String(error) }));
    return null;
  }
}

/** Send videos to the library, whose view shows how far that is.
 * @param {File[]} files */
export const sendVideos = async (files) => (await libraryView())?.sendVideos(files);

export function startLibraryView() {
  const show = () => { if (view.value === "library") void libraryView(); };
  view.onChange(show);
  show();
}
