/**
 * A board on which the replicas of a fleet post one token for each credential, so that one of them asks for it and the others wait
 * or take it over. It carries sealed texts and marks: what is in them, and when to ask, is the token part's. A lease says who
 * asks; it is kept up by claiming again and ends by itself, so that nobody waits for a replica that died.
 */
import type { RedisScriptClient } from '../redis/script-client.ts';
import type { ScriptReply, Script } from '../redis/script.ts';
import {
  CLAIM_SCRIPT,
  DISCARD_UNREADABLE_SCRIPT,
  PUBLISH_FAILURE_SCRIPT,
  PUBLISH_SCRIPT,
  RELEASE_LEASE_SCRIPT,
} from './token-scripts.ts';

/** What a script is asked with, and what it answers, as the token part has them. */
interface ClaimRequest {
  readonly owner: string;
  readonly leaseMs: number;
  readonly excludedMark: string | undefined;
  readonly isRefused: boolean;
  readonly minRemainingShare: number;
}

type ClaimResult =
  | { readonly kind: 'found' | 'failed'; readonly sealed: string; readonly leftMs: number }
  | { readonly kind: 'taken'; readonly owner: string }
  | { readonly kind: 'yours'; readonly storeNow: number };

interface PublishRequest {
  readonly owner: string;
  readonly sealed: string;
  readonly mark: string;
  readonly expiresAt: number;
  readonly lifetimeMs: number;
}

/** Nothing rejects. Undefined: the fleet cannot be asked now. False: another replica has the lease. */
export interface RedisTokenStore {
  /** As the fleet's. */
  whenReady(): Promise<boolean>;
  /**
   * Finds the token that is posted, or the failure, or begins or prolongs the lease of the claimant.
   * A refused token is taken off; one with less than `leastShare` of its life left is not handed out.
   */
  claim(name: string, request: ClaimRequest): Promise<ClaimResult | undefined>;
  /** Posts a token, ends the lease, forgets the last failure. */
  publish(name: string, posting: PublishRequest): Promise<boolean | undefined>;
  /** Posts a failure, and ends the lease. The owner yields to others who wanted to ask for `holdMs` longer than they do. */
  publishFailure(name: string, owner: string, sealed: string, holdMs: number): Promise<boolean | undefined>;
  /** Ends the lease. */
  releaseLease(name: string, owner: string): Promise<boolean | undefined>;
  /** Takes a posted text off the board that cannot be read, if it is still there. */
  discardUnreadable(name: string, sealed: string): Promise<boolean | undefined>;
}

/** @param keyPrefix what the name of every key begins with */
export function createRedisTokenStore(
  fleet: Pick<RedisScriptClient, 'whenReady' | 'runWithLongerTimeout'>,
  keyPrefix: string,
): RedisTokenStore {
  const run = (script: Script, name: string, ...args: (string | number)[]): Promise<ScriptReply | undefined> =>
    // Rare, and one wait is cheaper than a token request of each replica.
    fleet.runWithLongerTimeout(script, `${keyPrefix}:token:${name}`, args);
  const done = (reply: ScriptReply | undefined): boolean | undefined =>
    reply === undefined ? undefined : reply[0] === 1;
  return {
    whenReady: () => fleet.whenReady(),
    async claim(name, { owner, leaseMs, excludedMark = '', isRefused, minRemainingShare }) {
      const reply = await run(CLAIM_SCRIPT, name, owner, leaseMs, excludedMark, isRefused ? 1 : 0, minRemainingShare);
      return reply && parseClaimResult(reply);
    },
    async publish(name, { owner, sealed, mark, expiresAt, lifetimeMs }) {
      return done(await run(PUBLISH_SCRIPT, name, owner, sealed, mark, Math.floor(expiresAt), Math.floor(lifetimeMs)));
    },
    publishFailure: async (name, owner, sealed, holdMs) =>
      done(await run(PUBLISH_FAILURE_SCRIPT, name, owner, sealed, Math.ceil(holdMs))),
    releaseLease: async (name, owner) => done(await run(RELEASE_LEASE_SCRIPT, name, owner)),
    discardUnreadable: async (name, sealed) => done(await run(DISCARD_UNREADABLE_SCRIPT, name, sealed)),
  };
}

function parseClaimResult([kind, first, second]: ScriptReply): ClaimResult | undefined {
  if (kind === 'taken' && typeof first === 'string') return { kind, owner: first };
  if (kind === 'yours' && typeof first === 'number') return { kind, storeNow: first };
  if ((kind === 'found' || kind === 'failed') && typeof first === 'string' && typeof second === 'number')
    return { kind, sealed: first, leftMs: second };
  return undefined;
}
