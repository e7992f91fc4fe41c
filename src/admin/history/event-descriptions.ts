/** Notable events in plain words (pure), for the status page. An everyday matter, such as a request that has ended, has none. */
import type { AttemptOutcome, SidecarEvent } from '../../telemetry/events.ts';

/** A notable event in words. */
export interface EventDescription {
  readonly text: string;
  readonly level: 'info' | 'warn' | 'error';
  /** What makes it the same as another one. Default: its words. */
  readonly key?: string;
}

/** Undefined for what is an everyday matter. */
export function describeEvent(event: SidecarEvent): EventDescription | undefined {
  switch (event.kind) {
    case 'attempt-ended':
      return describeAttempt(event);
    case 'local-reply':
      return warn(`The sidecar answered a call itself: ${event.code}`);
    case 'queue-rejected':
      return event.reason === 'client_left' ? info('A client left the queue') : undefined;
    case 'retry':
      return event.reason === 'status' ? info('A call was tried again after an error of the upstream') : undefined;
    case 'retry-budget-exhausted':
      return warn('No more tries: too many of the recent calls were second ones');
    case 'rate-limited':
      return describeRefusal(event);
    case 'rate-limit-shape':
      return info('The upstream states its limits in a way not seen before; the log has the fields');
    case 'insufficient-scope':
      return warn(`The upstream requires a scope that the token does not have${appendDetail(event.needed)}`);
    default:
      return describeOccurrence(event);
  }
}

function describeOccurrence(event: SidecarEvent): EventDescription | undefined {
  switch (event.kind) {
    case 'configuration-read':
      return describeReload(event);
    case 'fleet-joined':
      return info('Joined the fleet');
    case 'fleet-lost':
      return warn(`Alone, without the fleet: ${event.detail}`);
    case 'listening':
      return info(`The ${event.server} port listens on ${event.url}`);
    case 'draining':
      return warn('Shutting down: calls under way are finished');
    case 'warning':
      return warn(event.message);
    default:
      return describeTokenEvent(event);
  }
}

function describeTokenEvent(event: SidecarEvent): EventDescription | undefined {
  const of = 'credential' in event && event.credential !== 'default' ? ` of ${event.credential}` : '';
  switch (event.kind) {
    case 'token-requested':
      return event.outcome === 'ok'
        ? info(`Token${of} obtained${describeLifetime(event.lifetimeMs)}`)
        : { text: `Token${of} not obtained (${event.outcome})${appendDetail(event.detail)}`, level: 'error' };
    case 'token-invalidated':
      return event.reason === 'rotated'
        ? info(`Token${of} put away: the credentials have changed`)
        : warn(`Token${of} put away: the upstream refused it (401)`);
    case 'token-found':
      return info(`Token${of} taken from ${event.from}${describeLifetime(event.validForMs)}`);
    case 'token-circuit':
      return event.phase === 'open'
        ? { text: `The token endpoint${of} keeps failing: it is asked now and then`, level: 'error' }
        : info(`The token endpoint${of} works again`);
    case 'token-scopes-missing':
      return event.missing.length === 0
        ? info(`Token${of}: all scopes are granted again`)
        : warn(`Token${of} lacks scopes that were asked for: ${event.missing.join(' ')}`);
    case 'credential-rotation':
      return event.outcome === 'taken'
        ? info(`New credentials${of} taken`)
        : warn(`New credentials${of} ${event.outcome}, the older ones stay in use${appendDetail(event.detail)}`);
    case 'token-not-asked':
      return warn(`Token${of} not asked for, ${event.from} has just failed: ${event.detail}`);
    default:
      return undefined;
  }
}

const ATTEMPT_FAILURE_TEXTS: Partial<Record<AttemptOutcome, string>> = {
  unreachable: 'could not be reached',
  timeout: 'did not answer in time',
  reset: 'broke a connection off',
  cut: 'broke a response off',
};

/** Called for every attempt: most have been answered, and no words are made of those. */
function describeAttempt(event: Extract<SidecarEvent, { kind: 'attempt-ended' }>): EventDescription | undefined {
  const words = ATTEMPT_FAILURE_TEXTS[event.outcome];
  if (words === undefined || event.isOwn === true) return undefined;
  return { text: `${nameUpstream(event.route)} ${words}`, level: 'error' };
}

function nameUpstream(route: string): string {
  return route === 'default' ? 'The upstream' : `The upstream of ${route}`;
}

/** Waits differ from one refusal to the next; the newest is shown. */
function describeRefusal({
  route,
  status,
  pauseMs,
  stated,
}: Extract<SidecarEvent, { kind: 'rate-limited' }>): EventDescription {
  const wait = pauseMs < 1000 ? 'under a second' : `about ${Math.round(pauseMs / 1000)} s`;
  const pause = pauseMs <= 0 ? '' : stated ? `, and asked for a pause of ${wait}` : `; a pause of ${wait} follows`;
  const words = `${nameUpstream(route)} refused a call for its rate (${status})${pause}`;
  return { text: words, level: 'warn', key: `refused ${route} ${status}` };
}

function describeReload({ outcome, lines }: Extract<SidecarEvent, { kind: 'configuration-read' }>): EventDescription {
  const what = lines.length === 0 ? 'nothing has changed' : lines.join('; ');
  if (outcome === 'ok') return info(`Configuration read again: ${what}`);
  const why = outcome === 'refused' ? 'a restart is needed for' : 'it is invalid';
  return warn(`Configuration not taken over; ${why}: ${what}`);
}

function describeLifetime(ms: number | undefined): string {
  return ms === undefined
    ? ''
    : `, valid for ${ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`}`;
}

function appendDetail(detail: string | undefined): string {
  return detail === undefined ? '' : `: ${detail}`;
}

function info(words: string): EventDescription {
  return { text: words, level: 'info' };
}

function warn(words: string): EventDescription {
  return { text: words, level: 'warn' };
}
