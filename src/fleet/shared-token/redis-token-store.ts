/**
 * Implements the store of shared tokens (token/store/shared-token-store.ts) over Redis: one hash per credential, changed by
 * scripts. It sees sealed texts and marks only.
 */
import type { ClaimResult, SharedTokenStore } from '../../token/store/shared-token-store.ts';
import type { RedisScriptClient } from '../redis/script-client.ts';
import type { Script, ScriptReply } from '../redis/script.ts';
import {
  CLAIM_SCRIPT,
  DISCARD_UNREADABLE_SCRIPT,
  PUBLISH_FAILURE_SCRIPT,
  PUBLISH_SCRIPT,
  RELEASE_LEASE_SCRIPT,
} from './token-scripts.ts';

/** @param keyPrefix begins the name of every key */
export function createRedisTokenStore(
  client: Pick<RedisScriptClient, 'whenReady' | 'runWithLongerTimeout'>,
  keyPrefix: string,
): SharedTokenStore {
  const run = (script: Script, name: string, ...args: (string | number)[]): Promise<ScriptReply | undefined> =>
    // Calls are rare, and one wait is cheaper than a token request of each replica.
    client.runWithLongerTimeout(script, `${keyPrefix}:token:${name}`, args);
  const runChange = async (...call: Parameters<typeof run>): Promise<boolean | undefined> => {
    const reply = await run(...call);
    return reply === undefined ? undefined : reply[0] === 1;
  };
  return {
    whenReady: () => client.whenReady(),
    async claim(name, { owner, leaseMs, excludedMark = '', isRefused, minRemainingShare }) {
      const reply = await run(CLAIM_SCRIPT, name, owner, leaseMs, excludedMark, isRefused ? 1 : 0, minRemainingShare);
      return reply && parseClaimResult(reply);
    },
    publish: (name, { owner, sealed, mark, expiresAt, lifetimeMs }) =>
      runChange(PUBLISH_SCRIPT, name, owner, sealed, mark, Math.floor(expiresAt), Math.floor(lifetimeMs)),
    publishFailure: (name, owner, sealed, holdMs) =>
      runChange(PUBLISH_FAILURE_SCRIPT, name, owner, sealed, Math.ceil(holdMs)),
    releaseLease: (name, owner) => runChange(RELEASE_LEASE_SCRIPT, name, owner),
    discardUnreadable: (name, sealed) => runChange(DISCARD_UNREADABLE_SCRIPT, name, sealed),
  };
}

function parseClaimResult([kind, first, second]: ScriptReply): ClaimResult | undefined {
  if (kind === 'taken' && typeof first === 'string') return { kind, owner: first };
  if (kind === 'yours' && typeof first === 'number') return { kind, storeNow: first };
  if ((kind === 'found' || kind === 'failed') && typeof first === 'string' && typeof second === 'number')
    return { kind, sealed: first, leftMs: second };
  return undefined;
}
