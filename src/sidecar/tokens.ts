/** Joins the parts that bring the tokens of one credential: the endpoint, what is read for it, and the source that holds the token. */
import type { Clock, Random } from '../platform/clock.ts';
import type { AuthConfig } from '../config/config.ts';
import type { Egress } from '../platform/egress/egress.ts';
import type { Observe } from '../telemetry/events.ts';
import type { ClientCredential, ClientReading } from '../token/client/client-authentication.ts';
import { createCredentialSupply } from '../token/client/credential-supply.ts';
import type { TokenSupply } from '../token/source/supply.ts';
import { cacheTokens } from '../token/store/token-cache.ts';
import { shareTokens } from '../token/store/shared-tokens.ts';
import type { SharedRequest } from '../token/store/shared-tokens.ts';
import type { TokenBoard } from '../token/store/token-board.ts';
import { createTokenEndpoint } from '../token/endpoint/token-endpoint.ts';
import type { TokenEndpoint } from '../token/endpoint/token-endpoint.ts';
import { createTokenSource } from '../token/source/token-source.ts';
import type { TokenSource } from '../token/token.ts';

export interface TokensOptions {
  /** Label of the events. */
  readonly credential: string;
  readonly auth: AuthConfig;
  readonly egress: Egress;
  /** Where replicas share their tokens; undefined: this process is alone. */
  readonly board: TokenBoard | undefined;
  /** Hears each client secret that is read, the first time and when it has changed. */
  readonly withhold: Withhold;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
}

/** Takes note of a secret that must be shown nowhere. */
export type Withhold = (secret: string, clientId: string) => void;

export function createTokens(options: TokensOptions): TokenSource {
  const { credential, auth, egress, board, clock, random, observe } = options;
  const endpoint = createTokenEndpoint({ ...auth, egress, clock, observe });
  const asked = createCredentialSupply({
    credential,
    read: readAndWithhold(endpoint, options.withhold),
    request:
      board === undefined ? (client, signal) => endpoint.request(client, signal) : shareOver(board, endpoint, options),
    canChange: endpoint.canChange,
    clock,
    observe,
  });
  const supply = auth.cacheFile === undefined ? asked : keepIn(auth.cacheFile, asked, endpoint, { clock, observe });
  const { invalidationCooldownMs, scope } = auth;
  return createTokenSource({ credential, scope, supply, invalidationCooldownMs, clock, random, observe });
}

function readAndWithhold(endpoint: TokenEndpoint, withhold: Withhold): () => Promise<ClientReading> {
  let known: string | undefined;
  return async () => {
    const client = await endpoint.read();
    if (client.kind === 'unreadable' || client.version === known) return client;
    known = client.version;
    // A key is never written as it is registered here, and is too long to be looked for in every line.
    if (client.method === 'client_secret_basic' || client.method === 'client_secret_post')
      withhold(client.keyMaterial, client.clientId);
    return client;
  };
}

/** Beneath the choice of credentials: replicas that use the same ones meet, whichever those are. */
function shareOver(
  board: TokenBoard,
  endpoint: TokenEndpoint,
  { auth, clock, random, observe }: TokensOptions,
): SharedRequest<ClientCredential> {
  return shareTokens<ClientCredential>({
    board,
    request: (client, signal) => endpoint.request(client, signal),
    identify: (client) => ({ binding: endpoint.binding(client), keyMaterial: client.keyMaterial }),
    patienceMs: auth.timeoutMs,
    clock,
    random,
    observe,
  });
}

function keepIn(
  path: string,
  supply: TokenSupply,
  endpoint: TokenEndpoint,
  { clock, observe }: Pick<TokensOptions, 'clock' | 'observe'>,
): TokenSupply {
  const readSeal = async () => {
    const client = await endpoint.read();
    if (client.kind === 'unreadable') return undefined;
    return { binding: endpoint.binding(client), keyMaterial: client.keyMaterial };
  };
  return cacheTokens(supply, { path, readSeal, clock, observe });
}
