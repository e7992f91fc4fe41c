/**
 * The latest notable events in plain words (pure), newest first. What happens again soon is counted, not listed again, so that a
 * storm of one kind does not push the rest out. Single requests are no event here; the words are event-words.ts's.
 */
import type { SidecarEvent } from '../../telemetry/events.ts';
import { describeEvent } from './event-descriptions.ts';
import type { EventDescription } from './event-descriptions.ts';

export interface LoggedEvent extends Pick<EventDescription, 'text' | 'level'> {
  /** Epoch milliseconds of the first and the last of `count`. */
  readonly firstWallAt: number;
  readonly lastWallAt: number;
  readonly count: number;
}

const MAX_EVENTS = 40;
/** The same after more than this is listed anew. */
const MERGE_WINDOW_MS = 60_000;
/** Only the newest few are compared: a storm alternates between a few kinds. */
const MAX_COMPARED = 6;
const MAX_TEXT_LENGTH = 300;

export class EventLog {
  readonly #events: (LoggedEvent & { readonly key: string })[] = [];
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
  read(): readonly LoggedEvent[] {
    return this.#events;
  }

  #add({ text: whole, level, key = whole }: EventDescription, wallAt: number): void {
    const words = whole.length <= MAX_TEXT_LENGTH ? whole : `${whole.slice(0, MAX_TEXT_LENGTH)}…`;
    const index = this.#events.slice(0, MAX_COMPARED).findIndex((old) => old.key === key);
    const same = this.#events[index];
    if (same !== undefined && wallAt - same.lastWallAt <= MERGE_WINDOW_MS) {
      this.#events.splice(index, 1);
      this.#events.unshift({ ...same, text: words, lastWallAt: wallAt, count: same.count + 1 });
      return;
    }
    this.#events.unshift({ text: words, level, key, firstWallAt: wallAt, lastWallAt: wallAt, count: 1 });
    if (this.#events.length > MAX_EVENTS) this.#events.pop();
  }
}
