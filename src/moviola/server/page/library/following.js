// Jobs of the server, followed to their ends. One request asks for all of them: a stream of events for each would
// take all the connections that a browser opens to a server, from the sixth job on.

import * as api from "../base/api.js";
import { t } from "../base/language.js";

const PAUSE = 1000; // ms

/** A function to call with each state of a job, by the job's name.
 * @type {Map<string, {job: api.Job, draw: (now: api.Job) => void}>} */
const followed = new Map();

/** @param {api.Job} job */
export const runs = ({ state }) => state === "running" || state === "queued";

/** @param {api.Job} job @param {(now: api.Job) => void} draw called with each state, lastly with the final one */
export function follow(job, draw) {
  followed.set(job.job, { job, draw });
  if (followed.size === 1) void ask();
}

async function ask() {
  while (followed.size) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    const known = await api.jobs().catch(() => null);
    if (!known) continue; // the server is away, which the page says
    for (const [name, { job, draw }] of [...followed]) {
      const now = known.find((other) => other.job === name) ?? { ...job, state: "failed", error: t("the server was restarted: bring in the rest again") };
      if (!runs(now)) followed.delete(name);
      draw(now);
    }
  }
}
