/** A token source with tokens that a test sets, and a record of those that were refused. */
import { SidecarError } from '../../src/platform/errors.ts';
import type { Token, TokenSource, TokenUse } from '../../src/token/token.ts';

function makeToken(serial: number): Token {
  return {
    value: `token-${String(serial)}`,
    serial,
    scope: undefined,
    obtainedAt: 0,
    expiresAt: 3_600_000,
    expiresWallAt: 3_600_000,
  };
}

export class FakeTokens implements TokenSource {
  held: Token | undefined = makeToken(1);
  /** Whether a refused token is replaced. Default false. */
  isReplaced = false;
  /** Serial numbers of the tokens that were refused with 401, in order. */
  readonly refused: number[] = [];

  start(): void {
    this.held ??= makeToken(1);
  }

  requestIfMissing(): void {
    this.start();
  }

  stop(): void {
    this.held = undefined;
  }

  current(): TokenUse | undefined {
    return this.held && { token: this.held, takenAt: 0 };
  }

  waitForToken(): Promise<Token> {
    return this.held === undefined
      ? Promise.reject(new SidecarError('TOKEN_UNAVAILABLE', 'no token in this test', { retryAfterMs: 2000 }))
      : Promise.resolve(this.held);
  }

  recordRejected({ token }: TokenUse): void {
    this.refused.push(token.serial);
  }

  waitForReplacement(): Promise<boolean> {
    return Promise.resolve(this.isReplaced);
  }

  recordAccepted(): void {
    this.start();
  }

  state(): never {
    throw new Error('not used in these tests');
  }
}
