// Sending a video in parts: goes on after a broken connection, and after this page was opened again.

import * as api from "../base/api.js";
import { remembered } from "../base/store.js";

/** @typedef {{address: string, name: string, bytes: number}} Unfinished */

const PART = 16 * 2 ** 20;
const LAST_RETRY = 10_000; // ms

/** Uploads that were begun in this browser, by file. */
export const unfinished = remembered("moviola.uploads", /** @type {Record<string, Unfinished>} */ ({}));

/** Files that are being sent from this page.
 * @type {Set<string>} */
export const sending = new Set();

/** @param {File} file */
const keyOf = ({ name, size, lastModified }) => `${name}/${size}/${lastModified}`;

/** @param {string} key */
function forget(key) {
  const { [key]: _, ...others } = unfinished.value;
  unfinished.value = others;
}

/** Where bytes of a file go, and how many are there.
 * @param {File} file @param {string} key */
async function begun(file, key) {
  const known = unfinished.value[key];
  if (known) {
    const state = await api.uploadState(known.address).catch(gone);
    if (state) return { address: known.address, offset: state.offset };
  }
  const address = await api.beginUpload(file);
  unfinished.value = { ...unfinished.value, [key]: { address, name: file.name, bytes: file.size } };
  return { address, offset: 0 };
}

/** @param {unknown} error @returns {null} where the upload is not there any more */
function gone(error) {
  if (error instanceof api.ApiError && error.code === "not_found") return null;
  throw error;
}

/** Whether the same can work in a while.
 * @param {unknown} error */
const passes = (error) => error instanceof api.Unreachable || (error instanceof api.ApiError && ["busy", "unavailable"].includes(error.code));

/** Send a file; gives its path on the server.
 * @param {File} file @param {(sent: number) => void} progress @param {AbortSignal} signal */
export async function sendFile(file, progress, signal) {
  const key = keyOf(file);
  sending.add(key);
  try {
    let { address, offset } = await begun(file, key);
    for (let wait = 500; offset < file.size;) {
      progress(offset);
      try {
        offset = await api.sendPart(address, file.slice(offset, offset + PART), offset, progress, signal);
        wait = 500;
      } catch (error) {
        if (signal.aborted || !passes(error)) throw error;
        await new Promise((resolve) => setTimeout(resolve, wait));
        wait = Math.min(2 * wait, LAST_RETRY);
        ({ offset } = await api.uploadState(address).catch((again) => { if (passes(again)) return { offset }; throw again; }));
      }
      if (signal.aborted) throw new api.Unreachable("cancelled");
    }
    const { path } = await api.uploadState(address);
    forget(key);
    return path;
  } catch (error) {
    if (signal.aborted || !passes(error)) await cancelUpload(key).catch(() => {}); // it expires
    throw error;
  } finally {
    sending.delete(key);
  }
}

/** Delete what has been sent of a file.
 * @param {string} key */
export async function cancelUpload(key) {
  const known = unfinished.value[key];
  forget(key);
  if (known) await api.cancelUpload(known.address).catch(gone);
}
