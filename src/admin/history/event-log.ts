/**
 * The latest notable events as text (pure), newest first. A repeated event is counted, not listed again, so that many events of one
 * kind do not push out the others. The texts are in event-descriptions.ts.
 */
import type { LocalReplyCode } from '../../platform/errors.ts';
import type { SidecarEvent } from '../../telemetry/events.ts';
import { describeEvent } from './event-descriptions.ts';
import type { EventDescription } from './event-descriptions.ts';

export interface LoggedEvent extends Pick<EventDescription, 'text' | 'level'> {
  /** Epoch milliseconds of the last of `count`. */
  readonly lastWallAt: number;
  readonly count: number;
}

const MAX_EVENTS = 40;
/** An event that is repeated later than this is listed anew. */
const MERGE_WINDOW_MS = 60_000;
/** Only the newest few are compared: frequent events alternate between a few kinds. */
const MAX_COMPARED = 6;
const MAX_TEXT_LENGTH = 300;

export class EventLog {
  readonly #events: (LoggedEvent & { readonly key: string })[] = [];
  readonly #wallNow: () => number;

  /** @param wallNow epoch milliseconds */
  constructor(wallNow: () => number) {
    this.#wallNow = wallNow;
  }

  observe(event: SidecarEvent): void {
    const description = describeEvent(event);
    if (description !== undefined) this.#add(description, this.#wallNow());
  }

  addLocalReply(code: LocalReplyCode): void {
    this.#add({ text: `The sidecar sent an error response: ${code}`, level: 'warn' }, this.#wallNow());
  }

  /** Newest first, at most 40. */
  read(): readonly LoggedEvent[] {
    return this.#events;
  }

  #add({ text: fullText, level, key = fullText }: EventDescription, wallAt: number): void {
    const text = fullText.length <= MAX_TEXT_LENGTH ? fullText : `${fullText.slice(0, MAX_TEXT_LENGTH)}…`;
    const index = this.#events.slice(0, MAX_COMPARED).findIndex((old) => old.key === key);
    const same = this.#events[index];
    if (same !== undefined && wallAt - same.lastWallAt <= MERGE_WINDOW_MS) {
      this.#events.splice(index, 1);
      this.#events.unshift({ ...same, text, lastWallAt: wallAt, count: same.count + 1 });
      return;
    }
    this.#events.unshift({ text, level, key, lastWallAt: wallAt, count: 1 });
    if (this.#events.length > MAX_EVENTS) this.#events.pop();
  }
}
