// Of answers that cross on their way the one to the last question counts.

/** Keeps the answer to the last question alone: an older one that comes later would hide a newer state.
 * @returns {<T>(asked: Promise<T>) => Promise<T | null>} gives the answer, null where a newer question was put */
export function latest() {
  let last = 0;
  return async (asked) => {
    const mine = (last += 1);
    const answer = await asked;
    return mine === last ? answer : null;
  };
}
