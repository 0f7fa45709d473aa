// The picture that the player shows, as it is: saved or copied.

import { h } from "../base/dom.js";
import { clock, reasonOf, title } from "../base/format.js";
import { t } from "../base/language.js";
import { notify } from "../base/notices.js";

/** @param {HTMLVideoElement} video @returns {Promise<Blob>} a PNG */
async function pictureOf(video) {
  const canvas = h("canvas", { width: video.videoWidth, height: video.videoHeight });
  canvas.getContext("2d")?.drawImage(video, 0, 0);
  const picture = await new Promise((/** @type {BlobCallback} */ resolve) => canvas.toBlob(resolve, "image/png"));
  if (!picture || video.readyState < 2) throw new Error(t("no picture is shown yet"));
  return picture;
}

/** @param {Blob} content @param {string} name */
export function saveAs(content, name) {
  const link = h("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** @param {unknown} error */
const failed = (error) => notify(t("Failed: {reason}", { reason: reasonOf(error) }));

/** @param {HTMLVideoElement} video @param {string} id */
export async function savePicture(video, id) {
  const name = `${title(id)} ${clock(video.currentTime, 3).replaceAll(":", ".")}.png`;
  await pictureOf(video).then((picture) => saveAs(picture, name)).catch(failed);
}

/** @param {HTMLVideoElement} video */
export async function copyPicture(video) {
  if (!("clipboard" in navigator)) return failed(t("this browser copies nothing from addresses without https"));
  const item = new ClipboardItem({ "image/png": pictureOf(video) });
  await navigator.clipboard.write([item]).then(() => notify(t("The picture is copied")), failed);
}

/** @param {string} text @param {string} done what is said then */
export async function copyText(text, done) {
  if (!("clipboard" in navigator)) return failed(t("this browser copies nothing from addresses without https"));
  await navigator.clipboard.writeText(text).then(() => notify(done), failed);
}
