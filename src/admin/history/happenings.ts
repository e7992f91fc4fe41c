/**
 * The latest notable events in plain words (pure), newest first. What happens again soon is counted, not listed again, so that a
 * storm of one kind does not push the rest out. Single requests are no event here; the words are event-words.ts's.
 */
import type { SidecarEvent } from '../../telemetry/events.ts';
import { describeEvent } from './event-words.ts';
import type { Said } from './event-words.ts';

export interface Happening extends Pick<Said, 'words' | 'level'> {
  /** Epoch milliseconds of the first and the last of `count`. */
  readonly firstWallAt: number;
  readonly wallAt: number;
  readonly count: number;
}

const KEPT = 40;
/** The same after more than this is listed anew. */
const SAME_WITHIN_MS = 60_000;
/** Only the newest few are compared: a storm alternates between a few kinds. */
const COMPARED = 6;
const LONGEST_WORDS = 300;

export class Happenings {
  readonly #list: (Happening & { readonly key: string })[] = [];
  readonly #wallNow: () => number;

  /** @param wallNow epoch milliseconds; asked for notable events only */
  constructor(wallNow: () => number) {
    this.#wallNow = wallNow;
  }

  observe(event: SidecarEvent): void {
    // What every request tells, and nobody lists.
    if (event.kind === 'request-ended' || event.kind === 'permit-granted') return;
    const said = describeEvent(event);
    if (said !== undefined) this.#add(said, this.#wallNow());
  }

  /** Newest first, at most 40. */
  read(): readonly Happening[] {
    return this.#list;
  }

  #add({ words: whole, level, key = whole }: Said, wallAt: number): void {
    const words = whole.length <= LONGEST_WORDS ? whole : `${whole.slice(0, LONGEST_WORDS)}…`;
    const index = this.#list.slice(0, COMPARED).findIndex((old) => old.key === key);
    const same = this.#list[index];
    if (same !== undefined && wallAt - same.wallAt <= SAME_WITHIN_MS) {
      this.#list.splice(index, 1);
      this.#list.unshift({ ...same, words, wallAt, count: same.count + 1 });
      return;
    }
    this.#list.unshift({ words, level, key, firstWallAt: wallAt, wallAt, count: 1 });
    if (this.#list.length > KEPT) this.#list.pop();
  }
}
