/** The latest notable events as text (pure). A repeated one is counted, so that many of one kind do not push out the others. */
import type { LocalReplyCode } from '../../platform/errors.ts';
import { truncate } from '../../platform/truncate.ts';
import { describeEvent, type EventText } from '../../telemetry/event-texts.ts';
import type { SidecarEvent } from '../../telemetry/events.ts';

export interface LoggedEvent extends Pick<EventText, 'text' | 'level'> {
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

  constructor(wallNow: () => number) {
    this.#wallNow = wallNow;
  }

  observe(event: SidecarEvent): void {
    const { page } = describeEvent(event);
    if (page !== undefined) this.#add(page);
  }

  addLocalReply(code: LocalReplyCode): void {
    this.#add({ text: `The sidecar sent an error response: ${code}`, level: 'warn' });
  }

  read(): readonly LoggedEvent[] {
    return this.#events;
  }

  #add({ text: fullText, level, key = fullText }: EventText): void {
    const wallAt = this.#wallNow();
    const text = truncate(fullText, MAX_TEXT_LENGTH);
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
