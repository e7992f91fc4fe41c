/** The log lines of token events. No such event holds a secret. */
import type { Logger } from 'pino';
import type { SidecarEvent } from '../events.ts';
import { truncate, roundToTenths } from './log-values.ts';

type TokenRequestEvent = Extract<SidecarEvent, { kind: 'token-requested' | 'token-not-asked' }>;
type CredentialRotation = Extract<SidecarEvent, { kind: 'credential-rotation' }>;
type TokenStateEvent = Extract<
  SidecarEvent,
  {
    kind:
      | 'token-found'
      | 'token-circuit'
      | 'token-scopes-missing'
      | 'token-invalidated'
      | 'token-not-accepted-yet'
      | 'token-accepted-late';
  }
>;

/** Writes one line per event. */
export function logTokenEvent(logger: Logger, event: TokenRequestEvent | CredentialRotation | TokenStateEvent): void {
  switch (event.kind) {
    case 'token-requested':
    case 'token-not-asked':
      logTokenRequest(logger, event);
      return;
    case 'credential-rotation':
      logCredentialRotation(logger, event);
      return;
    default:
      logTokenState(logger, event);
  }
}

function logTokenRequest(logger: Logger, event: TokenRequestEvent): void {
  const fields = {
    credential: event.credential,
    outcome: event.outcome,
    detail: event.detail === undefined ? undefined : truncate(event.detail),
    nextInMs: event.nextInMs === undefined ? undefined : Math.round(event.nextInMs),
  };
  if (event.kind === 'token-not-asked') {
    logger.warn({ ...fields, from: event.from }, 'token request of another process failed');
    return;
  }
  const { file, lifetimeMs } = event;
  const allFields = { ...fields, file, durationMs: roundToTenths(event.durationMs), lifetimeMs };
  if (event.outcome === 'ok') logger.info(allFields, 'token obtained');
  else logger.warn(allFields, file === undefined ? 'token request failed' : 'the token file cannot be used');
}

function logCredentialRotation(logger: Logger, { credential, outcome, detail }: CredentialRotation): void {
  const fields = { credential, outcome, detail: detail === undefined ? undefined : truncate(detail) };
  if (outcome === 'taken') logger.info(fields, 'new credentials applied');
  else logger.warn(fields, 'new credentials not applied: the previous ones stay in use');
}

function logTokenState(logger: Logger, event: TokenStateEvent): void {
  const { kind, ...fields } = event;
  switch (kind) {
    case 'token-invalidated':
      logger.info(fields, 'token invalidated');
      return;
    case 'token-not-accepted-yet':
      logger.warn(fields, 'new token not accepted yet, using the previous one');
      return;
    case 'token-accepted-late':
      logger.info(fields, 'new token accepted after a delay');
      return;
    case 'token-found':
      logger.info(fields, 'token reused: no token request was needed');
      return;
    case 'token-circuit':
      if (event.phase === 'closed') logger.info(fields, 'the token endpoint works again');
      else logger.warn(fields, 'the token endpoint keeps failing: from now on it is probed at intervals');
      return;
    case 'token-scopes-missing':
      if (event.missing.length === 0) logger.info(fields, 'the token has all requested scopes');
      else logger.warn(fields, 'the token has fewer scopes than requested');
  }
}
