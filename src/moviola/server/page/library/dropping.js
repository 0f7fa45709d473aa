// Files dropped on the page or pasted into it: pictures are searched with, videos are sent to the library.

import { byId } from "../base/dom.js";
import { sendVideos } from "./library-view.js";
import { takePictures } from "../search/query.js";

const VIDEO = /\.(mp4|mov|m4v|mkv|webm|avi|mpe?g|mts|m2ts|wmv|flv|ogv|3gp)$/i;

/** @param {DataTransfer | null} data */
function filesIn(data) {
  const files = [...(data?.files ?? [])];
  const videos = files.filter((file) => file.type.startsWith("video/") || VIDEO.test(file.name));
  return { videos, others: files.filter((file) => !videos.includes(file)) };
}

export function startDropping() {
  const target = byId("drop", HTMLDivElement);
  document.addEventListener("paste", (event) => {
    const pictures = filesIn(event.clipboardData).others.filter((file) => file.type.startsWith("image/"));
    if (pictures.length) { event.preventDefault(); void takePictures(pictures); }
  });
  document.addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    target.hidden = false;
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) target.hidden = true; });
  document.addEventListener("drop", (event) => {
    target.hidden = true;
    const { videos, others } = filesIn(event.dataTransfer);
    if (!videos.length && !others.length) return;
    event.preventDefault();
    if (videos.length) void sendVideos(videos);
    if (others.length) void takePictures(others);
  });
}
