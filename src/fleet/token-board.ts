/**
 * A board on which the replicas of a fleet post one token for each credential, so that one of them asks for it and the others wait
 * or take it over. It carries sealed texts and marks: what is in them, and when to ask, is the token part's. A lease says who
 * asks; it is kept up by claiming again and ends by itself, so that nobody waits for a replica that died.
 */
import type { Fleet } from './fleet.ts';
import type { Reply, Script } from './script.ts';
import { CLAIM, DISCARD, FAIL, PUBLISH, RELEASE } from './token-scripts.ts';

/** What a script is asked with, and what it answers, as the token part has them. */
interface ClaimRequest {
  readonly owner: string;
  readonly leaseMs: number;
  readonly unwanted: string | undefined;
  readonly isRefused: boolean;
  readonly leastShare: number;
}

type Claim =
  | { readonly kind: 'found' | 'failed'; readonly sealed: string; readonly leftMs: number }
  | { readonly kind: 'taken'; readonly by: string }
  | { readonly kind: 'yours'; readonly boardNow: number };

interface Posting {
  readonly owner: string;
  readonly sealed: string;
  readonly mark: string;
  readonly expiresAt: number;
  readonly lifetimeMs: number;
}

/** Nothing rejects. Undefined: the fleet cannot be asked now. False: another replica has the lease. */
export interface TokenBoard {
  /** As the fleet's. */
  whenReady(): Promise<boolean>;
  /**
   * Finds the token that is posted, or the failure, or begins or prolongs the lease of the claimant.
   * A refused token is taken off; one with less than `leastShare` of its life left is not handed out.
   */
  claim(name: string, request: ClaimRequest): Promise<Claim | undefined>;
  /** Posts a token, ends the lease, forgets the last failure. */
  publish(name: string, posting: Posting): Promise<boolean | undefined>;
  /** Posts a failure, and ends the lease. The owner yields to others who wanted to ask for `holdMs` longer than they do. */
  fail(name: string, owner: string, sealed: string, holdMs: number): Promise<boolean | undefined>;
  /** Ends the lease. */
  release(name: string, owner: string): Promise<boolean | undefined>;
  /** Takes a posted text off the board that cannot be read, if it is still there. */
  discard(name: string, sealed: string): Promise<boolean | undefined>;
}

/** @param keyPrefix what the name of every key begins with */
export function createTokenBoard(fleet: Pick<Fleet, 'whenReady' | 'runPatiently'>, keyPrefix: string): TokenBoard {
  const run = (script: Script, name: string, ...args: (string | number)[]): Promise<Reply | undefined> =>
    // Rare, and one wait is cheaper than a token request of each replica.
    fleet.runPatiently(script, `${keyPrefix}:token:${name}`, args);
  const done = (reply: Reply | undefined): boolean | undefined => (reply === undefined ? undefined : reply[0] === 1);
  return {
    whenReady: () => fleet.whenReady(),
    async claim(name, { owner, leaseMs, unwanted = '', isRefused, leastShare }) {
      const reply = await run(CLAIM, name, owner, leaseMs, unwanted, isRefused ? 1 : 0, leastShare);
      return reply && readClaim(reply);
    },
    async publish(name, { owner, sealed, mark, expiresAt, lifetimeMs }) {
      return done(await run(PUBLISH, name, owner, sealed, mark, Math.floor(expiresAt), Math.floor(lifetimeMs)));
    },
    fail: async (name, owner, sealed, holdMs) => done(await run(FAIL, name, owner, sealed, Math.ceil(holdMs))),
    release: async (name, owner) => done(await run(RELEASE, name, owner)),
    discard: async (name, sealed) => done(await run(DISCARD, name, sealed)),
  };
}

function readClaim([kind, first, second]: Reply): Claim | undefined {
  if (kind === 'taken' && typeof first === 'string') return { kind, by: first };
  if (kind === 'yours' && typeof first === 'number') return { kind, boardNow: first };
  if ((kind === 'found' || kind === 'failed') && typeof first === 'string' && typeof second === 'number')
    return { kind, sealed: first, leftMs: second };
  return undefined;
}
