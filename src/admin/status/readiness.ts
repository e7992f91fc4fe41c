/** The body of /readyz (pure). Every peer may read it, so it holds no detail and no secret. */
import type { TokenState } from '../../token/token.ts';
import type { SidecarStates } from './states.ts';

/** Names the credential in each text when there are several. */
export function prefixCredential(
  { credential }: TokenState,
  among: readonly TokenState[],
  texts: readonly string[],
): readonly string[] {
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
