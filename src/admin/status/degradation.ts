/** The warnings of /status: conditions that need an operator although requests still succeed (pure). */
import type { FleetConnectionState } from '../../fleet/redis/connection-health.ts';
import { describeReloadFailure, describeUnknownCallsFault } from '../../telemetry/event-texts.ts';
import type { LogDeliveryProblem } from '../../telemetry/events.ts';
import type { TokenState } from '../../token/token.ts';
import { prefixCredential } from './readiness.ts';
import type { ConfigurationState, SidecarStates } from './states.ts';

/** One text per warning; empty when there is none. */
export function describeDegradation(states: SidecarStates): string[] {
  const { tokens, insufficientScopes = [], fleet, configuration, logTrouble, unknownCallsFault } = states;
  return [
    ...tokens.flatMap((token) => prefixCredential(token, tokens, describeTokenFaults(token))),
    ...insufficientScopes.map(
      ({ route, needed }) =>
        `route ${route}: the upstream requires a scope that the token does not have${needed === undefined ? '' : `: ${needed}`}`,
    ),
    ...describeFleetFault(fleet),
    ...describeReloadFault(configuration),
    ...(logTrouble === undefined ? [] : [describeLogTrouble(logTrouble)]),
    ...(unknownCallsFault === undefined ? [] : [describeUnknownCallsFault(unknownCallsFault)]),
  ];
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

function describeTokenFaults({
  circuit,
  lastFailure,
  credentialFault,
  refreshTokenFault,
  missingScopes,
}: TokenState): string[] {
  return [
    ...(circuit === 'closed' ? [] : [`${describeOutage(lastFailure)}: ${lastFailure?.detail ?? 'no detail'}`]),
    ...(credentialFault === undefined ? [] : [`${credentialFault.detail}; the previous credentials stay in use`]),
    ...(refreshTokenFault === undefined ? [] : [refreshTokenFault]),
    ...(missingScopes.length === 0 ? [] : [`the token lacks requested scopes: ${missingScopes.join(' ')}`]),
  ];
}

function describeOutage(failure: TokenState['lastFailure']): string {
  return failure?.isUnsent === true ? 'no token request can be sent' : 'the token endpoint keeps failing';
}

/** Why the configuration file is not the active configuration; empty when it is. */
export function describeReloadFault(state: ConfigurationState | undefined): string[] {
  const last = state?.lastReload;
  if (last === undefined || last.outcome === 'ok') return [];
  return [`the configuration file was not reloaded; ${describeReloadFailure(last.outcome, last.lines)}`];
}
