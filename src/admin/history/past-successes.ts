/**
 * What has worked so far, by route and credential, and what has changed here since: the verdict says with it until when calls succeeded.
 * Read from the counters once a second; throttle.stateFile keeps it over a restart.
 */
import type { Clock } from '../../platform/clock.ts';
import { describeReloadChanges } from '../../telemetry/event-texts.ts';
import type { SidecarEvent } from '../../telemetry/events.ts';
import type { SampleSource } from '../samples/samples.ts';

/**
 * What a call shows: `answered`: the upstream responds. `authorized`: it accepts the token. `succeeded`: the status is below 400, and the
 * response is the API's. `token`: the authorization server issues one; its subject is a credential, that of the others a route.
 */
export type Evidence = 'answered' | 'authorized' | 'succeeded' | 'token';

interface Change {
  readonly wallAt: number;
  /** A clause: `the configuration was reloaded`. */
  readonly words: string;
}

/** The form of the file. */
interface SavedSuccesses {
  readonly since: number;
  readonly entries: readonly (readonly [key: string, count: number, wallAt: number])[];
}

/** A success is sampled a second late at most, and its response takes time: a change so shortly before it counts as later. */
const CHANGE_LAG_MS = 5000;
const MAX_CHANGES = 8;
const MAX_ENTRIES = 1000;
/** The file is written less often than calls come. */
const SAVE_INTERVAL_MS = 60_000;
/** 429 and 403 may come before the token is looked at. */
const AUTHORIZED = /^(?:[123]|4(?!01|03|07|29))/;

export class PastSuccesses {
  readonly #source: Pick<SampleSource, 'counters'>;
  readonly #clock: Pick<Clock, 'wallNow'>;
  /** By evidence and subject; `before` is what earlier processes had counted. */
  readonly #entries = new Map<string, { before: number; highest: number; wallAt: number }>();
  readonly #changes: Change[] = [];
  #sinceWallAt: number;
  #saved: SavedSuccesses | undefined;
  #savedWallAt = -Infinity;

  constructor(source: Pick<SampleSource, 'counters'>, clock: Pick<Clock, 'wallNow'>) {
    this.#source = source;
    this.#clock = clock;
    this.#sinceWallAt = clock.wallNow();
  }

  /**
   * How many successes the subject has had since `sinceWallAt`, the last of them at `untilWallAt` (0 without one), and the first change here
   * since then.
   * @param subject a route or a credential; null: of all together
   */
  find(evidence: Evidence, subject: string | null) {
    const isMeant = (key: string): boolean =>
      subject === null ? key.startsWith(`${evidence} `) : key === `${evidence} ${subject}`;
    const found = [...this.#entries].flatMap(([key, entry]) => (isMeant(key) ? [entry] : []));
    const count = found.reduce((sum, { before, highest }) => sum + before + highest, 0);
    const untilWallAt = Math.max(0, ...found.map(({ wallAt }) => wallAt));
    const change = this.#changes.find(({ wallAt }) => wallAt >= untilWallAt - CHANGE_LAG_MS);
    return { count, untilWallAt, change, sinceWallAt: this.#sinceWallAt };
  }

  observe(event: SidecarEvent): void {
    if (event.kind === 'configuration-read' && event.outcome === 'ok' && event.lines.length > 0)
      this.#noteChange(`the configuration was reloaded (${describeReloadChanges(event.lines)})`);
    if (event.kind === 'credential-rotation' && event.outcome === 'taken')
      this.#noteChange('new credentials were applied');
  }

  /** To be called once a second. */
  sample(): void {
    const counts = new Map<string, number>();
    const add = (evidence: Evidence, subject = '', count: number): void => {
      const key = `${evidence} ${subject}`;
      counts.set(key, (counts.get(key) ?? 0) + count);
    };
    const read = (metric: string) => this.#source.counters.get(metric) ?? [];
    for (const { labels, count } of read('requests_total')) {
      if (labels.source !== 'upstream' || labels.code === undefined) continue;
      add('answered', labels.route, count);
      if (AUTHORIZED.test(labels.code)) add('authorized', labels.route, count);
      if (labels.code < '4') add('succeeded', labels.route, count);
    }
    for (const { labels, count } of read('foreign_responses_total')) add('succeeded', labels.route, -count);
    for (const { labels, count } of [...read('token_requests_total'), ...read('fleet_tokens_total')])
      if (labels.outcome === 'ok') add('token', labels.credential, count);
    for (const [key, count] of counts) if (count > 0) this.#record(key, count);
  }

  /** Undefined before the first response. @param isLast also when the last one is recent */
  save(isLast: boolean): SavedSuccesses | undefined {
    this.sample();
    if (![...this.#entries.keys()].some((key) => key.startsWith('answered'))) return undefined;
    const now = this.#clock.wallNow();
    if (this.#saved !== undefined && !isLast && now - this.#savedWallAt < SAVE_INTERVAL_MS) return this.#saved;
    this.#savedWallAt = now;
    const entries = Array.from(
      this.#entries,
      ([key, { before, highest, wallAt }]) => [key, before + highest, wallAt] as const,
    );
    return (this.#saved = { since: this.#sinceWallAt, entries });
  }

  /** Takes over what an earlier process has saved; any other value is ignored. */
  restore(saved: unknown): void {
    const { since, entries } = (saved ?? {}) as Partial<SavedSuccesses>;
    if (!isInstant(since) || !Array.isArray(entries) || entries.length > MAX_ENTRIES) return;
    if (!entries.every(isSavedEntry)) return;
    this.#sinceWallAt = since;
    for (const [key, before, wallAt] of entries) this.#entries.set(key, { before, highest: 0, wallAt });
    this.#noteChange('the sidecar was restarted');
  }

  /** A foreign response is counted at its head and its request at its end, so that only a new highest count is a success. */
  #record(key: string, count: number): void {
    const entry = this.#entries.get(key) ?? { before: 0, highest: 0, wallAt: 0 };
    this.#entries.set(key, entry);
    if (count <= entry.highest) return;
    entry.highest = count;
    entry.wallAt = this.#clock.wallNow();
  }

  #noteChange(words: string): void {
    this.#changes.push({ wallAt: this.#clock.wallNow(), words });
    if (this.#changes.length > MAX_CHANGES) this.#changes.shift();
  }
}

function isSavedEntry(entry: unknown): entry is SavedSuccesses['entries'][number] {
  if (!Array.isArray(entry) || entry.length !== 3) return false;
  const [key, count, wallAt] = entry as readonly unknown[];
  return typeof key === 'string' && Number.isSafeInteger(count) && Number(count) >= 0 && isInstant(wallAt);
}

function isInstant(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < 8.64e15;
}
