/** The texts of notable events (pure), for the status page. Ordinary events, such as the end of a request, have none. */
import type { AttemptOutcome, SidecarEvent } from '../../telemetry/events.ts';
import { describeReloadChanges, describeReloadFailure } from '../status/configuration.ts';

export interface EventDescription {
  readonly text: string;
  readonly level: 'info' | 'warn' | 'error';
  /** Events with the same key are counted as one. Default: the text. */
  readonly key?: string;
}

/** Undefined for an ordinary event. */
export function describeEvent(event: SidecarEvent): EventDescription | undefined {
  switch (event.kind) {
    case 'attempt-failed':
      return describeAttempt(event);
    case 'queue-rejected':
      return event.reason === 'client_left' ? info('A client disconnected while its request was queued') : undefined;
    case 'retry':
      return event.reason === 'status' ? info('A request was retried after an upstream error') : undefined;
    case 'retry-budget-exhausted':
      return warn('Retry budget exhausted: a request was not retried');
    case 'rate-limited':
      return describeRateLimit(event);
    case 'refusal-proposed':
      return warn(`${event.evidence}. Proposed setting: ${event.setting}`);
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
      return info('Connected to the fleet');
    case 'fleet-lost':
      return warn(`Connection to the fleet lost: ${event.detail}`);
    case 'fleet-degraded':
      return warn(`The fleet is degraded: ${event.detail}`);
    case 'listening':
      return info(`The ${event.server} port listens on ${event.url}`);
    case 'draining':
      return warn('Shutting down: requests in progress are completed');
    case 'warning':
      return warn(event.message);
    default:
      return describeTokenEvent(event);
  }
}

function describeTokenEvent(event: SidecarEvent): EventDescription | undefined {
  const suffix = 'credential' in event && event.credential !== 'default' ? ` for ${event.credential}` : '';
  switch (event.kind) {
    case 'token-requested':
      if (event.outcome === 'ok') return info(`Token${suffix} obtained${describeLifetime(event.lifetimeMs)}`);
      return event.file === undefined
        ? { text: `Token request${suffix} failed (${event.outcome})${appendDetail(event.detail)}`, level: 'error' }
        : { text: `The token file${suffix} cannot be used${appendDetail(event.detail)}`, level: 'error' };
    case 'token-invalidated':
      return event.reason === 'rotated'
        ? info(`Token${suffix} discarded: the credentials have changed`)
        : warn(`Token${suffix} discarded: the upstream rejected it (401)`);
    case 'token-not-accepted-yet':
      return warn(`New token${suffix} not accepted yet, using the previous one`);
    case 'token-accepted-late':
      return info(`New token${suffix} accepted ${(event.delayMs / 1000).toFixed(1)} s after its issue`);
    case 'token-found':
      return info(`Token${suffix} taken from ${event.from}${describeLifetime(event.validForMs)}`);
    case 'token-circuit':
      return event.phase === 'open'
        ? { text: `The token endpoint${suffix} keeps failing: it is probed at intervals`, level: 'error' }
        : info(`The token endpoint${suffix} works again`);
    case 'token-scopes-missing':
      return event.missing.length === 0
        ? info(`Token${suffix} has all requested scopes again`)
        : warn(`Token${suffix} lacks requested scopes: ${event.missing.join(' ')}`);
    case 'credential-rotation':
      return event.outcome === 'taken'
        ? info(`New credentials${suffix} applied`)
        : warn(`New credentials${suffix} ${event.outcome}, the previous ones stay in use${appendDetail(event.detail)}`);
    case 'token-not-asked':
      return warn(`No token requested${suffix}, because ${event.from} has just failed: ${event.detail}`);
    default:
      return undefined;
  }
}

const ATTEMPT_FAILURE_TEXTS: Partial<Record<AttemptOutcome, string>> = {
  unreachable: 'could not be reached',
  timeout: 'did not respond in time',
  reset: 'reset a connection',
  cut: 'cut off a response',
};

function describeAttempt(event: Extract<SidecarEvent, { kind: 'attempt-failed' }>): EventDescription | undefined {
  const failure = ATTEMPT_FAILURE_TEXTS[event.outcome];
  if (failure === undefined || event.cause === undefined) return undefined;
  return { text: `${nameUpstream(event.route)} ${failure}`, level: 'error' };
}

function nameUpstream(route: string): string {
  return route === 'default' ? 'The upstream' : `The upstream of route ${route}`;
}

/** The pause differs from response to response, so it is not part of the key. */
function describeRateLimit({
  route,
  status,
  pauseMs,
  stated,
}: Extract<SidecarEvent, { kind: 'rate-limited' }>): EventDescription {
  const wait = pauseMs < 1000 ? 'under a second' : `about ${Math.round(pauseMs / 1000)} s`;
  const pause = pauseMs <= 0 ? '' : stated ? `; it asked for a pause of ${wait}` : `; pausing for ${wait}`;
  const text = `${nameUpstream(route)} rate limited a request (${status})${pause}`;
  return { text, level: 'warn', key: `rate limited ${route} ${status}` };
}

function describeReload({ outcome, lines }: Extract<SidecarEvent, { kind: 'configuration-read' }>): EventDescription {
  if (outcome === 'ok') return info(`Configuration reloaded: ${describeReloadChanges(lines)}`);
  return warn(`Configuration not reloaded; ${describeReloadFailure(outcome, lines)}`);
}

function describeLifetime(ms: number | undefined): string {
  return ms === undefined
    ? ''
    : `, valid for ${ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`}`;
}

function appendDetail(detail: string | undefined): string {
  return detail === undefined ? '' : `: ${detail}`;
}

function info(text: string): EventDescription {
  return { text, level: 'info' };
}

function warn(text: string): EventDescription {
  return { text, level: 'warn' };
}
