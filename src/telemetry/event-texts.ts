/**
 * Each event in words, one entry each (pure): its log line, and its line among the recent events of the status page. An event that has no
 * log line here has one at level `debug`, with all its fields; an ordinary event has no line on the page. No text holds a secret.
 */
import type { Redact } from '../platform/secret-redaction.ts';
import { truncate } from '../platform/truncate.ts';
import type { AttemptOutcome, ReloadOutcome, SidecarEvent } from './events.ts';

export interface EventText {
  readonly level: 'info' | 'warn' | 'error';
  readonly text: string;
  /** The fields of the log line. Default: those of the event. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** On the page, events with the same key are counted as one. Default: the text. */
  readonly key?: string;
}

export interface EventTexts {
  readonly log?: EventText | readonly EventText[];
  readonly page?: EventText | undefined;
}

type EventOf<Kind> = Extract<SidecarEvent, { readonly kind: Kind }>;

const TEXTS: { readonly [Kind in SidecarEvent['kind']]?: (event: EventOf<Kind>) => EventTexts } = {
  'attempt-failed': ({ route, outcome, cause }) => {
    const failure = cause === undefined ? undefined : ATTEMPT_FAILURES[outcome];
    return { page: failure === undefined ? undefined : error(`${nameUpstream(route)} ${failure}`) };
  },
  retry: ({ reason }) => ({
    page: reason === 'status' ? info('A request was retried after an upstream error') : undefined,
  }),
  'retry-budget-exhausted': () => ({ page: warn('Retry budget exhausted: a request was not retried') }),
  'rate-limited': ({ route, status, pauseMs, stated, fields }) => {
    const wait = pauseMs < 1000 ? 'under a second' : `about ${Math.round(pauseMs / 1000)} s`;
    const pause = pauseMs <= 0 ? '' : stated ? `; it asked for a pause of ${wait}` : `; pausing for ${wait}`;
    const text = `${nameUpstream(route)} rate limited a request (${status})${pause}`;
    const logged = { route, status, pauseMs: Math.round(pauseMs), stated, rateLimitFields: fields };
    return {
      log: warn('rate limited by the upstream', { fields: logged }),
      // The pause differs from response to response, so it is not part of the key.
      page: warn(text, { key: `rate limited ${route} ${status}` }),
    };
  },
  'limit-assumed': ({ kind: _, ...fields }) => ({
    log: warn('calls are paced: a status that no setting names is taken for a rate limit', { fields }),
    page: warn(
      `${fields.status} is taken for a rate limit: calls are paced. To make it certain, set ${fields.setting}`,
    ),
  }),
  'response-broken-off': ({ route, stalledMs }) => ({
    log: warn('a response was broken off: its client reads nothing, and another request waits for its place', {
      fields: { route, stalledMs: Math.round(stalledMs) },
    }),
    page: warn('A response was broken off: its client read nothing, and another request waited for its place'),
  }),
  'queue-rejected': ({ reason }) => ({
    page: reason === 'client_left' ? info('A client disconnected while its request was queued') : undefined,
  }),
  'calls-observed': ({ kind: _, since, wouldWait, wouldWaitMs, wouldRefuse, ...given }) => {
    const known = { wouldWait, wouldWaitMs: Math.round(wouldWaitMs), wouldRefuse };
    const unknown = { wouldWait: 'unknown', wouldWaitMs: 'unknown', wouldRefuse: 'unknown' };
    const figures = given.certainty === 'unknown' ? unknown : known;
    const fields = { ...given, ...figures, since: new Date(since).toISOString() };
    return { log: info('limits were observed and not enforced', { fields }) };
  },
  'foreign-response': ({ route, detail }) => ({
    log: warn('a response is none of the API', { fields: { route, detail } }),
    page: error(`${nameUpstream(route)} sent no response of the API: ${detail}`),
  }),
  'insufficient-scope': ({ needed }) => ({
    log: warn('the upstream requires a scope that the token does not have'),
    page: warn(`The upstream requires a scope that the token does not have${appendDetail(needed)}`),
  }),
  'token-requested': ({ credential, outcome, file, detail, durationMs, lifetimeMs, nextInMs }) => {
    const fields = {
      credential,
      outcome,
      detail: detail && truncate(detail),
      nextInMs: nextInMs && Math.round(nextInMs),
      file,
      durationMs: Math.round(durationMs * 10) / 10,
      lifetimeMs,
    };
    const suffix = nameCredential(credential);
    if (outcome === 'ok')
      return {
        log: info('token obtained', { fields }),
        page: info(`Token${suffix} obtained${describeLifetime(lifetimeMs)}`),
      };
    const [logged, shown] =
      file === undefined
        ? ['token request failed', `Token request${suffix} failed (${outcome})`]
        : ['the token file cannot be used', `The token file${suffix} cannot be used`];
    return { log: warn(logged, { fields }), page: error(shown + appendDetail(detail)) };
  },
  'token-not-asked': ({ credential, outcome, detail, nextInMs, from }) => {
    const fields = { credential, outcome, detail: truncate(detail), nextInMs: nextInMs && Math.round(nextInMs), from };
    return {
      log: warn('token request of another process failed', { fields }),
      page: warn(`No token requested${nameCredential(credential)}, because ${from} has just failed: ${detail}`),
    };
  },
  'token-invalidated': ({ credential, reason }) => ({
    log: info('token invalidated'),
    page:
      reason === 'rotated'
        ? info(`Token${nameCredential(credential)} discarded: the credentials have changed`)
        : warn(`Token${nameCredential(credential)} discarded: the upstream rejected it (401)`),
  }),
  'token-not-accepted-yet': ({ credential }) => ({
    log: warn('new token not accepted yet, using the previous one'),
    page: warn(`New token${nameCredential(credential)} not accepted yet, using the previous one`),
  }),
  'token-accepted-late': ({ credential, delayMs }) => ({
    log: info('new token accepted after a delay'),
    page: info(`New token${nameCredential(credential)} accepted ${(delayMs / 1000).toFixed(1)} s after its issue`),
  }),
  'token-found': ({ credential, from, validForMs }) => ({
    log: info('token reused: no token request was needed'),
    page: info(`Token${nameCredential(credential)} taken from ${from}${describeLifetime(validForMs)}`),
  }),
  'token-circuit': ({ credential, phase }) =>
    phase === 'open'
      ? {
          log: warn('the token endpoint keeps failing: from now on it is probed at intervals'),
          page: error(`The token endpoint${nameCredential(credential)} keeps failing: it is probed at intervals`),
        }
      : {
          log: info('the token endpoint works again'),
          page: info(`The token endpoint${nameCredential(credential)} works again`),
        },
  'token-scopes-missing': ({ credential, missing }) =>
    missing.length === 0
      ? {
          log: info('the token has all requested scopes'),
          page: info(`Token${nameCredential(credential)} has all requested scopes again`),
        }
      : {
          log: warn('the token has fewer scopes than requested'),
          page: warn(`Token${nameCredential(credential)} lacks requested scopes: ${missing.join(' ')}`),
        },
  'credential-rotation': ({ credential, outcome, detail }) => {
    const fields = { credential, outcome, detail: detail && truncate(detail) };
    const subject = `New credentials${nameCredential(credential)}`;
    return outcome === 'taken'
      ? { log: info('new credentials applied', { fields }), page: info(`${subject} applied`) }
      : {
          log: warn('new credentials not applied: the previous ones stay in use', { fields }),
          page: warn(`${subject} ${outcome}, the previous ones stay in use${appendDetail(detail)}`),
        };
  },
  'configuration-read': ({ outcome, lines }) => {
    if (outcome === 'ok') {
      const nothing = lines.length === 0 ? ': nothing has changed' : '';
      return {
        log: info(`configuration reloaded${nothing}`, { fields: { changes: lines } }),
        page: info(`Configuration reloaded: ${describeReloadChanges(lines)}`),
      };
    }
    const page = warn(`Configuration not reloaded; ${describeReloadFailure(outcome, lines)}`);
    const text = 'configuration not reloaded: these keys need a restart, and nothing was changed';
    if (outcome === 'refused') return { log: warn(text, { fields: { keys: lines } }), page };
    const problems = lines.map((line) => ({ fields: { problem: truncate(line) } }));
    return { log: problems.map((problem) => error('configuration not reloaded: it is invalid', problem)), page };
  },
  'fleet-joined': () => ({ log: info('fleet joined'), page: info('Connected to the fleet') }),
  'fleet-lost': ({ detail }) => ({
    log: warn('connection to the fleet lost: this replica works alone', { fields: { detail: truncate(detail) } }),
    page: warn(`Connection to the fleet lost: ${detail}`),
  }),
  'fleet-degraded': ({ detail }) => ({
    log: warn('the fleet is degraded: this replica works alone', { fields: { detail: truncate(detail) } }),
    page: warn(`The fleet is degraded: ${detail}`),
  }),
  'unknown-calls-file': ({ phase, code }) => {
    if (phase === 'works')
      return {
        log: info('calls are recorded again in unknownCalls.file'),
        page: info('Calls are recorded again in unknownCalls.file'),
      };
    if (phase === 'fails-still') return {};
    return {
      log: warn('calls cannot be recorded in unknownCalls.file', { fields: { code } }),
      page: warn(describeUnknownCallsFault(code)),
    };
  },
  listening: ({ server, url }) => ({ log: info('listening'), page: info(`The ${server} port listens on ${url}`) }),
  draining: () => ({ log: info('draining'), page: warn('Shutting down: requests in progress are completed') }),
  stopped: ({ cut }) => ({ log: cut === 0 ? info('stopped') : warn('stopped') }),
  warning: ({ message }) => ({ log: warn(truncate(message), { fields: {} }), page: warn(message) }),
};

/** Log lines of events that repeat often: after the first, one line per interval and route with the number of those since. */
export const SUMMARIES = {
  'rate-limited': { everyMs: 5000, counted: 'signals', text: 'still rate limited by the upstream' },
  // Longer: this and a missing scope need an operator.
  'foreign-response': { everyMs: 60_000, counted: 'responses', text: 'responses are still none of the API' },
  'insufficient-scope': {
    everyMs: 60_000,
    counted: 'requests',
    text: 'the upstream still requires a scope that the token does not have',
  },
} as const;

/** @param code the system's */
export function describeUnknownCallsFault(code: string | undefined): string {
  return `Calls cannot be recorded in unknownCalls.file (${code ?? ''})`;
}

/** The members of events that may hold text from outside. */
const TEXTS_FROM_OUTSIDE: ReadonlySet<string> = new Set(['detail', 'message', 'needed', 'missing', 'lines', 'from']);

/** The event with secrets masked; before its texts are cut. */
export function maskEvent(event: SidecarEvent, mask: Redact): SidecarEvent {
  const members = Object.entries(event).map(([name, value]: [string, unknown]) => {
    if (!TEXTS_FROM_OUTSIDE.has(name)) return [name, value];
    return [name, typeof value === 'string' ? mask(value) : Array.isArray(value) ? value.map(String).map(mask) : value];
  });
  return Object.fromEntries(members) as SidecarEvent;
}

/** Empty for an event without words of its own. */
export function describeEvent<Kind extends SidecarEvent['kind']>(event: EventOf<Kind> & { kind: Kind }): EventTexts {
  return TEXTS[event.kind]?.(event) ?? {};
}

export function describeReloadChanges(lines: readonly string[]): string {
  return lines.length === 0 ? 'nothing has changed' : lines.join('; ');
}

export function describeReloadFailure(outcome: Exclude<ReloadOutcome, 'ok'>, lines: readonly string[]): string {
  return `${outcome === 'refused' ? 'a restart is needed for' : 'it is invalid'}: ${lines.join('; ')}`;
}

const ATTEMPT_FAILURES: Partial<Record<AttemptOutcome, string>> = {
  unreachable: 'could not be reached',
  timeout: 'did not respond in time',
  reset: 'reset a connection',
  cut: 'cut off a response',
};

function nameUpstream(route: string): string {
  return route === 'default' ? 'The upstream' : `The upstream of route ${route}`;
}

function nameCredential(credential: string): string {
  return credential === 'default' ? '' : ` for ${credential}`;
}

function describeLifetime(ms: number | undefined): string {
  if (ms === undefined) return '';
  return `, valid for ${ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`}`;
}

function appendDetail(detail: string | undefined): string {
  return detail === undefined ? '' : `: ${detail}`;
}

type More = Pick<EventText, 'fields' | 'key'>;

function info(text: string, more?: More): EventText {
  return { level: 'info', text, ...more };
}

function warn(text: string, more?: More): EventText {
  return { level: 'warn', text, ...more };
}

function error(text: string, more?: More): EventText {
  return { level: 'error', text, ...more };
}
