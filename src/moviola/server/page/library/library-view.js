// The library's view is loaded when it is first wanted: most visits only search.

import * as api from "../base/api.js";
import { reasonOf } from "../base/format.js";
import { notify } from "../base/notices.js";
import { t } from "../base/language.js";
import { view } from "../base/store.js";

/** @type {Promise<typeof import("./library.js")> | null} */
let loading = null;

/** The view, which stands in the page once this is fulfilled. */
async function libraryView() {
  loading ??= import("./library.js").then((loaded) => { loaded.startLibrary(); return loaded; });
  try {
    return await loading;
  } catch (error) {
    loading = null; // to be tried again
    const why = reasonOf(error);
    await api.library().then(() => notify(t("The library cannot be shown: {why}", { why })), () => {}); // or the server is away, which the page says
    return null;
  }
}

/** Send videos to the library, whose view shows how far that is.
 * @param {File[]} files */
export const sendVideos = async (files) => (await libraryView())?.sendVideos(files);

export function startLibraryView() {
  const show = () => { if (view.value === "library") void libraryView(); };
  view.onChange(show);
  api.connection.addEventListener("up", show);
  show();
}
