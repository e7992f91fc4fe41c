import { describe, expect, it } from 'vitest';
import { readInsufficientScope } from '../../src/exchange/token-challenge.ts';

function head(status: number, ...challenges: string[]) {
  const fields = challenges.flatMap((challenge) => ['WWW-Authenticate', challenge]);
  return { status, headers: ['Content-Type', 'application/json', ...fields] };
}

describe('a 403 for want of a scope', () => {
  it.each<[string, string | undefined]>([
    ['Bearer error="insufficient_scope"', undefined],
    ['Bearer error=insufficient_scope', undefined],
    ['bearer realm="api", error = "insufficient_scope", scope="urn:a.write urn:b.read"', 'urn:a.write urn:b.read'],
    ['Bearer scope="a b", error="insufficient_scope", error_description="no"', 'a b'],
    ['Bearer error="insufficient_scope", scope=""', undefined],
    ['Bearer error="insufficient_scope", scope="a\u0007b"', undefined],
    ['Bearer error="insufficient_scope", x_scope="c"', undefined],
    [`Bearer error="insufficient_scope", scope="${'s'.repeat(2000)}"`, 's'.repeat(256)],
  ])('%s', (challenge, needed) => {
    expect(readInsufficientScope(head(403, challenge))).toEqual({ needed });
  });

  it('is found among several challenges', () => {
    const refusal = readInsufficientScope(head(403, 'Basic realm="x"', 'Bearer error="insufficient_scope", scope="a"'));
    expect(refusal).toEqual({ needed: 'a' });
  });
});

describe('no refusal for want of a scope', () => {
  it.each([
    ['another status', head(401, 'Bearer error="insufficient_scope"')],
    ['another error', head(403, 'Bearer error="invalid_token"')],
    ['no challenge', head(403)],
    ['another error that begins like it', head(403, 'Bearer error="insufficient_scope_of_work"')],
    ['the words in another field', { status: 403, headers: ['X-Note', 'error="insufficient_scope"'] }],
    ['the words as a name', { status: 403, headers: ['error="insufficient_scope"', 'WWW-Authenticate'] }],
  ])('%s', (_name, response) => {
    expect(readInsufficientScope(response)).toBeUndefined();
  });
});
