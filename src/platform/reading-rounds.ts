/**
 * Keeps connections that send bodies in very small chunks from blocking the event loop: a buffer of 64 KiB may hold 10 000 chunks.
 * Such connections are read one after another, some chunks per turn of the event loop. Counting and pausing are the reader's.
 */

/** In the order in which they are resumed. */
const paused: (() => void)[] = [];

function resumeNext(): void {
  paused.shift()?.();
  if (paused.length > 0) setImmediate(resumeNext);
}

/** Calls `resume` once, in a later turn, after those of the connections that were paused before. */
export function resumeInTurn(resume: () => void): void {
  if (paused.push(resume) === 1) setImmediate(resumeNext);
}
