/**
 * Implements the store of shared tokens (token/store/shared-token-store.ts) over Redis: one hash per credential, changed by
 * scripts. It sees sealed texts only.
 */
import { createHash } from 'node:crypto';
import type { ClaimResult, SharedTokenStore } from '../../token/store/shared-token-store.ts';
import type { RedisScriptClient } from '../redis/script-client.ts';
import type { Script, ScriptReply } from '../redis/script.ts';
import { CLAIM_SCRIPT, PUBLISH_FAILURE_SCRIPT, PUBLISH_SCRIPT, RELEASE_LEASE_SCRIPT } from './token-scripts.ts';

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
    async claim(name, { owner, leaseMs, declined, isUseless }) {
      // A digest: waiting replicas claim often, and a sealed token has kilobytes.
      const digest = declined === undefined ? '' : createHash('sha1').update(declined).digest('hex');
      const reply = await run(CLAIM_SCRIPT, name, owner, leaseMs, digest, isUseless ? 1 : 0);
      return reply && parseClaimResult(reply);
    },
    publish: (name, { owner, sealed, expiresAt }) =>
      runChange(PUBLISH_SCRIPT, name, owner, sealed, Math.floor(expiresAt)),
    publishFailure: (name, owner, sealed, holdMs) =>
      runChange(PUBLISH_FAILURE_SCRIPT, name, owner, sealed, Math.ceil(holdMs)),
    releaseLease: (name, owner) => runChange(RELEASE_LEASE_SCRIPT, name, owner),
  };
}

function parseClaimResult([kind, ...values]: ScriptReply): ClaimResult | undefined {
  const [first, storeNow, leftMs] = values;
  if (kind === 'taken' && typeof first === 'string') return { kind, owner: first };
  if (kind === 'yours' && typeof first === 'number') return { kind, storeNow: first };
  if (typeof first !== 'string' || typeof storeNow !== 'number') return undefined;
  if (kind === 'found') return { kind, sealed: first, storeNow };
  return kind === 'failed' && typeof leftMs === 'number' ? { kind, sealed: first, storeNow, leftMs } : undefined;
}
