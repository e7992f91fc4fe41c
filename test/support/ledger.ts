/**
 * The books of a run: per request id exactly one outcome at the client, and what the upstream saw of it. `balance` names
 * everything that does not add up.
 */
import { createHash } from 'node:crypto';

export type ClientOutcome =
  /** Complete by the rules of HTTP. */
  | { readonly kind: 'responded'; readonly status: number; readonly body: string | Buffer }
  /** The connection broke before the response was complete. */
  | { readonly kind: 'cut' }
  /** The client's own timeout passed. */
  | { readonly kind: 'gave-up' };

export interface ExpectedExchange {
  readonly method: string;
  readonly sent: string | Buffer;
  /** The body of the upstream's response. */
  readonly expected: string | Buffer;
  /** Longest time until an outcome, milliseconds. */
  readonly withinMs: number;
  /** Whether the client may have to give up: no other party can know that its bytes do not arrive. Default false. */
  readonly mayGiveUp?: boolean;
}

export interface OutcomeReport {
  readonly requests: number;
  /** How often each outcome occurred: `responded 200`, `cut`, … */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Complete requests at the upstream. */
  readonly seen: number;
  readonly duplicatedPosts: number;
  readonly falselyComplete: number;
  /** Requests that the upstream carried out, and whose response said that they were not. */
  readonly falselyRefused: number;
  /** POSTs that the upstream carried out, and whose local reply did not say that the outcome is unknown. */
  readonly unmarked: number;
  /** The slowest request, milliseconds. */
  readonly slowestMs: number;
  /** What does not add up, the above included; empty when the books balance. */
  readonly violations: readonly string[];
}

interface TrackedRequest extends ExpectedExchange {
  readonly openedAt: number;
  outcome: ClientOutcome | undefined;
  seen: number;
}

export class OutcomeChecker {
  readonly #accounts = new Map<string, TrackedRequest>();
  readonly #violations: string[] = [];
  readonly #outcomes: Record<string, number> = {};
  #duplicatedPosts = 0;
  #falselyComplete = 0;
  #slowestMs = 0;

  /** A request leaves the client. */
  recordSent(id: string, entry: ExpectedExchange): void {
    if (this.#accounts.has(id)) this.#violations.push(`${id}: sent twice by the client`);
    this.#accounts.set(id, { ...entry, openedAt: performance.now(), outcome: undefined, seen: 0 });
  }

  /** The upstream got a whole request, and carries it out. */
  recordReceived(id: string, bodySha256: string): void {
    const account = this.#accounts.get(id);
    if (account === undefined) {
      this.#violations.push(`${id}: it was not sent`);
      return;
    }
    account.seen++;
    if (bodySha256 !== sha256(account.sent)) this.#violations.push(`${id}: the upstream took a damaged body for whole`);
    if (account.method !== 'POST' || account.seen < 2) return;
    this.#duplicatedPosts++;
    this.#violations.push(`${id}: a POST reached the upstream ${String(account.seen)} times`);
  }

  /** The client's outcome. @returns its name in the balance */
  recordOutcome(id: string, outcome: ClientOutcome): string {
    const name = outcome.kind === 'responded' ? `responded ${String(outcome.status)}` : outcome.kind;
    const account = this.#accounts.get(id);
    if (account === undefined || account.outcome !== undefined) {
      this.#violations.push(`${id}: a second outcome, ${name}`);
      return name;
    }
    account.outcome = outcome;
    this.#outcomes[name] = (this.#outcomes[name] ?? 0) + 1;
    const tookMs = performance.now() - account.openedAt;
    this.#slowestMs = Math.max(this.#slowestMs, tookMs);
    if (tookMs > account.withinMs) this.#violations.push(`${id}: took ${tookMs.toFixed(0)} ms`);
    if (outcome.kind === 'gave-up' && account.mayGiveUp !== true)
      this.#violations.push(`${id}: left without an outcome`);
    if (outcome.kind === 'responded' && outcome.status === 200) this.#checkResponse(id, account, outcome.body);
    return name;
  }

  report(): OutcomeReport {
    const open = [...this.#accounts].filter(([, { outcome }]) => outcome === undefined);
    // Compared at the end: the upstream may carry a request out after its response.
    const refused = [...this.#accounts].filter(([, { outcome, seen }]) => seen > 0 && statesRefusal(outcome));
    const unmarked = [...this.#accounts].filter(([, account]) => account.seen > 0 && isUnmarked(account));
    return {
      requests: this.#accounts.size,
      outcomes: this.#outcomes,
      seen: [...this.#accounts.values()].reduce((sum, { seen }) => sum + seen, 0),
      duplicatedPosts: this.#duplicatedPosts,
      falselyComplete: this.#falselyComplete,
      falselyRefused: refused.length,
      unmarked: unmarked.length,
      slowestMs: this.#slowestMs,
      violations: [
        ...this.#violations,
        ...open.map(([id]) => `${id}: no outcome`),
        ...unmarked.map(([id]) => `${id}: carried out, and its reply does not say that the outcome is unknown`),
        ...refused.map(([id, { outcome }]) => `${id}: carried out, and the client got ${describe(outcome)}`),
      ],
    };
  }

  #checkResponse(id: string, account: TrackedRequest, body: string | Buffer): void {
    if (account.seen === 0) this.#violations.push(`${id}: a response, and the upstream never saw it`);
    if (sha256(body) === sha256(account.expected)) return;
    this.#falselyComplete++;
    this.#violations.push(`${id}: a damaged response passed for complete`);
  }
}

/** Local replies with a 502 for requests that were not sent. */
const NOT_SENT = /"code":"(?:UPSTREAM_UNREACHABLE|TOKEN_REJECTED)"/;

/** Whether the client was informed that its request was not carried out, so that it may be sent again. */
function statesRefusal(outcome: ClientOutcome | undefined): boolean {
  if (outcome?.kind !== 'responded') return false;
  return [401, 408, 429, 503].includes(outcome.status) || NOT_SENT.test(String(outcome.body));
}

/** A local reply of a call without a response. */
const NO_RESPONSE = /"code":"UPSTREAM_(?:RESET|TIMEOUT|PROTOCOL_ERROR)"/;

function isUnmarked({ method, outcome }: TrackedRequest): boolean {
  if (method !== 'POST' || outcome?.kind !== 'responded') return false;
  const body = String(outcome.body);
  return NO_RESPONSE.test(body) && !body.includes('"outcome":"unknown"');
}

function describe(outcome: ClientOutcome | undefined): string {
  return outcome?.kind === 'responded' ? `${String(outcome.status)} ${String(outcome.body)}` : String(outcome?.kind);
}

function sha256(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
