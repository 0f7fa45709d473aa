// Of answers that cross on their way the one to the last question counts.

/** Whether what was asked last was asked here: an older answer that comes later would hide a newer state.
 * @returns {<T>(asked: Promise<T>) => Promise<T | null>} gives the answer, null where something was asked since */
export function latest() {
  let last = 0;
  return async (asked) => {
    const mine = (last += 1);
    const answer = await asked;
    return mine === last ? answer : null;
  };
}
