// Why a file or a folder cannot be used, by the codes of the server (src/moviola/files/reasons.py).

import { number } from "./format.js";
import { filled, t } from "./language.js";

/** @typedef {{code: string, values: Record<string, string>}} Why */

/** @type {Record<string, string>} */
const SAID = {
  "no file": t("there is no such file"),
  "broken link": t("a link to a file that does not exist"),
  "unreadable": t("it cannot be read ({why})"),
  "no name": t("its path is not UTF-8 ({path}); rename it"),
  "folder": t("a folder, not a file; give a file"),
  "pipe": t("a named pipe, not a file; give a file"),
  "socket": t("a socket, not a file; give a file"),
  "device": t("a device, not a file; give a file"),
  "empty": t("the file is empty (0 bytes)"),
  "zeros": t("the file holds only zeros; copy it again from its source"),
  "text": t("a text file, not a video, whatever its name says ({suffix})"),
  "picture": t("a still picture despite its name, no video; it can be searched with instead"),
  "list": t("a list of other files ({format}), no media file; bring in these files"),
  "no index": t("an MP4 without its index: the recording was cut short or never finished"),
  "no media": t("not a media file that can be read ({why})"),
  "no codec": t("the video stream has a codec that is not known here"),
  "no stream": t("no stream in it can be read; it was cut short or is damaged"),
  "no film": t("there are no moving pictures in it, only sound, text or a cover"),
  "too large": t("pictures of {width} × {height} pixels; at most {most} pixels can be decoded"),
  "too narrow": t("pictures of {width} × {height} pixels; the longer side may be at most {most} times the shorter"),
  "too many": t("{pixels} pixels in all pictures; at most {most}"),
  "header": t("a damaged header: a picture every {seconds} s; write the file again"),
  "too long": t("longer than {hours} hours, or its time stamps are damaged"),
  "no picture": t("no picture can be decoded"),
  "no animation": t("no picture of this animated WebP can be decoded ({why})"),
  "link out": t("a link out of {folder}"),
  "link to no subtitles": t("a link to no subtitles"),
  "link since": t("a link has come to stand there since it was listed; bring it in again"),
  "not on node": t("no file of {size} bytes there; every node must see the videos by the same paths"),
  "damaged": t("damaged at {seconds} s; what decodes before and after is in"),
  "waits": t("its pictures wait for its file; bring it in again"),
  "changed since": t("it has changed while it was read, and nothing of it was kept; bring it in again"),
  "in part": t("{minutes} of {all} min in"),
  "in part of some": t("{minutes} min in"),
  "by key frames": t("by key frames alone so far"),
  "rest by key frames": t("{minutes} of {all} min in, the rest by key frames alone so far"),
  "root gone": t("it is not there"),
  "root unreadable": t("it cannot be read ({why})"),
  "root empty": t("it is empty, and held videos"),
  "root of none": t("another volume lies there, which has none of its videos"),
  "root of some": t("another volume lies there, which has {found} of {sample} of its videos; if it is the right one, “moviola library move {place} {place}” says so"),
};

const NUMBERS = new Set(["all", "found", "height", "hours", "minutes", "most", "pixels", "sample", "seconds", "size", "width"]);

/** A number of the server, such as 1,234.5, as the reader's language writes it; anything else as it is.
 * @param {[string, string]} named */
const written = ([name, value]) => [name, NUMBERS.has(name) && /^[\d,]+(\.\d+)?$/.test(value)
  ? number(Number(value.replaceAll(",", "")), value.split(".")[1]?.length ?? 0) : value];

/** A reason in the reader's language, else in the words of the server.
 * @param {Why} why @param {string} words */
export const reasonSaid = ({ code, values }, words) =>
  (SAID[code] ? filled(SAID[code], Object.fromEntries(Object.entries(values).map(written))) : words);
