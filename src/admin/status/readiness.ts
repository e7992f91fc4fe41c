/** The body of /readyz, which every peer may read, so that it holds no detail and no secret; and the warnings of /status (pure). */
import type { FleetConnectionState } from '../../fleet/redis/connection-health.ts';
import { describeReloadFailure, describeUnknownCallsFault } from '../../telemetry/event-texts.ts';
import type { LogDeliveryProblem } from '../../telemetry/events.ts';
import type { TokenState } from '../../token/token.ts';
import type { ClockSkew, ConfigurationState, SidecarStates } from './states.ts';

/** Names the credential in each text when there are several. */
function prefixCredential({ credential }: TokenState, among: readonly TokenState[], texts: readonly string[]) {
  return among.length === 1 ? texts : texts.map((text) => `credential ${credential}: ${text}`);
}

/** Ready while every credential has an unexpired token and the sidecar is not draining. A failing token endpoint is only a reason. */
export function describeReadiness({ draining, tokens }: Pick<SidecarStates, 'draining' | 'tokens'>) {
  const reasons = tokens.flatMap((token) => prefixCredential(token, tokens, describeTokenReadiness(token)));
  return {
    ready: !draining && tokens.every((token) => validForMs(token) > 0),
    reasons: [...(draining ? ['draining'] : []), ...reasons],
  };
}

/** 0 without a usable token, Infinity for one without an expiry. */
export function validForMs(token: TokenState): number {
  return token.status === 'none' ? 0 : (token.validForMs ?? Infinity);
}

function describeTokenReadiness(token: TokenState): string[] {
  const leftMs = validForMs(token);
  const lifetime = leftMs === Infinity ? 'without an expiry' : `valid for ${Math.floor(leftMs / 1000)} s`;
  const next = token.file === undefined ? 'a new one is being requested' : 'its file has no other one';
  return [
    leftMs > 0 ? `token ${lifetime}` : 'no usable token',
    ...(token.status === 'suspect' ? [`the upstream rejected the token; ${next}`] : []),
    ...describeFailures(token),
    ...(token.credentialFault === undefined ? [] : ['new credentials not applied; the previous ones stay in use']),
  ];
}

/** Without the detail, which may name hosts. */
function describeFailures({ consecutiveFailures, lastFailure, file }: TokenState): string[] {
  if (consecutiveFailures === 0) return [];
  if (file !== undefined) return ['the token file cannot be used (see /status)'];
  const times = consecutiveFailures === 1 ? 'once' : `${consecutiveFailures} times in a row`;
  if (lastFailure?.isUnsent === true)
    return [`no token request sent: a file of the client cannot be used (${times}, see /status)`];
  return [`token endpoint failed ${times} (${lastFailure?.outcome ?? 'unknown'})`];
}

/** The warnings: conditions that need an operator although requests still succeed. */
export function describeDegradation(states: SidecarStates): string[] {
  const { tokens, insufficientScopes = [], clockSkews = [], fleet, logTrouble, unknownCallsFault } = states;
  return [
    ...tokens.flatMap((token) => prefixCredential(token, tokens, describeTokenFaults(token))),
    ...insufficientScopes.map(
      ({ route, needed }) =>
        `route ${route}: the upstream requires a scope that the token does not have${needed === undefined ? '' : `: ${needed}`}`,
    ),
    ...clockSkews.map(
      (skew) =>
        `clock: ${describeSkew(skew)}; find out which one is wrong, and synchronize it with a time server (NTP)`,
    ),
    ...describeFleetFault(fleet),
    ...describeReloadFault(states.configuration),
    ...(logTrouble === undefined ? [] : [describeLogTrouble(logTrouble)]),
    ...(unknownCallsFault === undefined ? [] : [describeUnknownCallsFault(unknownCallsFault)]),
  ];
}

export function describeSkew({ from, skewMs }: ClockSkew): string {
  return `that of ${from} is ${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs > 0 ? 'ahead of' : 'behind'} ours`;
}

function describeFleetFault(fleet: FleetConnectionState | undefined): string[] {
  if (fleet?.fault === undefined) return [];
  return [`${fleet.state === 'degraded' ? 'the fleet is degraded' : 'connection to the fleet lost'}: ${fleet.fault}`];
}

function describeLogTrouble({ code, lostLines }: LogDeliveryProblem): string {
  const fault =
    code === undefined ? 'standard output is read too slowly' : `writing to standard output failed (${code})`;
  return `log: ${fault}; ${String(lostLines)} lines dropped so far`;
}

function describeTokenFaults(token: TokenState): string[] {
  const { circuit, lastFailure, credentialFault, refreshTokenFault, missingScopes } = token;
  const outage = lastFailure?.isUnsent === true ? 'no token request can be sent' : 'the token endpoint keeps failing';
  return [
    ...(circuit === 'closed' ? [] : [`${outage}: ${lastFailure?.detail ?? 'no detail'}`]),
    ...(credentialFault === undefined ? [] : [`${credentialFault.detail}; the previous credentials stay in use`]),
    ...(refreshTokenFault === undefined ? [] : [refreshTokenFault]),
    ...(missingScopes.length === 0 ? [] : [`the token lacks requested scopes: ${missingScopes.join(' ')}`]),
  ];
}

/** Why the configuration file is not the active configuration; empty when it is. */
export function describeReloadFault(state: ConfigurationState | undefined): string[] {
  const last = state?.lastReload;
  if (last === undefined || last.outcome === 'ok') return [];
  return [`the configuration file was not reloaded; ${describeReloadFailure(last.outcome, last.lines)}`];
}
