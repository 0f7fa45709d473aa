// What a file and the subtitle files beside it hold, what of it is used, and why the rest is not.

import * as api from "./api.js";
import { byId, fill, h, iconButton } from "./dom.js";
import { reasonOf, title } from "./format.js";
import { plural, t } from "./language.js";
import { partOf } from "./recording.js";
import { trackLines } from "./tracks.js";

/** What becomes of a part, by what it is taken for.
 * @type {Record<string, string>} */
const HELD = {
  "film": t("searched"), "sound": t("played, and read by --speech"), "subtitles": t("read"),
  "timecode": t("first timecode of exports"), "cover": t("a cover, not searched"),
  "other pictures": t("further pictures, not searched"), "other sound": t("further sound; --speech-track reads it"),
  "beside": t("read, unless a subtitle file has its language"), "other text": t("further text of its language, not read"),
  "pictures of text": t("pictures of text, not read"), "unread text": t("text of a kind that is not read"),
  "captions": t("captions inside the pictures, read where the film has no other text"),
  "measurements": t("places and times, read"), "data": t("data, not read"), "attachment": t("attached, not read"),
  "chapters": t("searched, as titles of stretches"), "words": t("searched, as words on the whole film"), "other words": t("not searched"),
  "live photo": t("film of a Live Photo, chosen by --live-photos"),
};

/** What files say of their films.
 * @type {Record<string, string>} */
const SAID = { title: t("Title"), keywords: t("Keywords"), description: t("Description"), people: t("People"), series: t("Series") };

/** @param {api.HeldPart} part */
const partLine = ({ held_as, about, stream, said }) => h("li", {}, stream === null ? null : h("span", { class: "muted" }, t("stream {n}", { n: stream }), " "),
  h("span", { dir: "auto" }, about), ": ", HELD[held_as] ?? said);

/** @param {string} name @param {(Node | string)[]} lines */
const section = (name, lines) => (lines.length ? h("section", {}, h("h3", {}, name), h("ul", {}, lines)) : null);

/** @param {api.VideoDetails} info */
function sections(info) {
  const unused = info.holds.filter(({ used }) => !used);
  return [
    h("p", { class: "path", dir: "auto" }, info.path),
    info.recording ? h("p", {}, partOf(info.recording), ": ", info.recording.video_ids.map(title).join(", ")) : null,
    h("p", { role: "status" }, info.holds.length === 0 ? t("The file was not looked into yet.") : unused.length ? plural(unused.length, "{n} part of the file is not used", "{n} parts of the file are not used") : t("All of the file is used.")),
    spoken(info),
    section(t("What it says of itself"), info.says.map(({ kind, text }) => h("li", {}, h("span", { class: "muted" }, SAID[kind] ?? kind), " ", h("span", { dir: "auto" }, text)))),
    section(t("Not used"), unused.map(partLine)),
    section(t("Used"), info.holds.filter(({ used }) => used).map(partLine)),
    section(t("Subtitles"), info.subtitles.map((said) => h("li", { dir: "auto" }, said))),
    section(t("Not read"), info.unread.map((said) => h("li", { dir: "auto" }, said))),
  ];
}

/** Speech and text, drawn again when their language was corrected.
 * @param {api.VideoDetails} info */
function spoken(info) {
  const element = h("div");
  const failure = h("p", { role: "alert", class: "why" });
  /** @param {api.Track[]} tracks @param {unknown} [error] @param {number} [at] place of the field that had the focus */
  const draw = (tracks, error = null, at = -1) => {
    failure.textContent = error ? reasonOf(error) : "";
    fill(element, section(t("Said and written"), trackLines(info.video_id, tracks, draw)), failure);
    element.querySelectorAll("select")[at]?.focus();
  };
  draw(info.tracks);
  return element;
}

const dialog = byId("account", HTMLDialogElement);
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

/** Show the account of a video over what is open.
 * @param {string} video */
export async function showAccount(video) {
  const body = h("div", { class: "account" }, h("p", { role: "status" }, t("Being read…")));
  fill(dialog, h("div", { class: "dialog-head" }, h("h2", { id: "account-title", dir: "auto" }, title(video)), iconButton("close", t("Close"), () => dialog.close())), body);
  dialog.showModal();
  try {
    fill(body, ...sections(await api.video(video)));
  } catch (error) {
    fill(body, h("p", { role: "alert" }, reasonOf(error)));
  }
}
