/** Formats of scope, client id, client secret and the required header, through their variables. */
import { describe, expect, test } from 'vitest';
import { configOf, problemsOf, scratchFile } from '../../base-env.ts';

describe('credentials', () => {
  test.each(['urn:x.read', 'a b c', '!#[]~'])('scope %j is read', (scope) => {
    expect(configOf({ SIDECAR_SCOPE: scope }).auth.scope).toBe(scope);
  });
  test.each([' a', 'a ', 'a  b', 'a\tb', 'a"b', 'a\\b', 'ü'])('scope %j is refused', (scope) => {
    expect(problemsOf({ SIDECAR_SCOPE: scope })).toEqual([expect.stringMatching(/^auth\.scope .*scope names/)]);
  });
  test.each([
    ['SIDECAR_CLIENT_ID', 'sesame:open', 'must not hold a colon'],
    ['SIDECAR_CLIENT_ID', 'sesame\u0000', 'control characters'],
    ['SIDECAR_CLIENT_SECRET', 'sesame\n', 'control characters'],
    ['SIDECAR_CLIENT_SECRET', '********', 'the mask'],
  ])('%s %j is refused without being shown', (variable, value, reason) => {
    const lines = problemsOf({ [variable]: value });
    expect(lines).toEqual([expect.stringContaining(reason)]);
    expect(lines[0]).not.toContain('sesame');
  });
  test('a secret may hold colons, blanks and letters of any script', () => {
    expect(configOf({ SIDECAR_CLIENT_SECRET: ' pä:ss wörd ' }).auth.method).toMatchObject({
      secret: { kind: 'value', value: ' pä:ss wörd ' },
    });
  });
  test.each([
    ['bytes that are no text', Buffer.from([0x61, 0xff, 0xfe, 0x0a]), 'is not UTF-8 text'],
    ['more than any secret', Buffer.alloc(1024 * 1024 + 1, 0x61), 'is larger than'],
  ])('a secret file with %s is refused at the start', (_, contents, reason) => {
    const env = { SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: scratchFile(contents) };
    expect(problemsOf(env)).toEqual([expect.stringContaining(reason)]);
  });
  test.each(['Host', 'transfer-encoding', 'X Key', 'X-Key:', 'ü'])('the required field name %j is refused', (name) => {
    const env = { SIDECAR_LISTEN_REQUIRED_HEADER_NAME: name, SIDECAR_LISTEN_REQUIRED_HEADER_VALUE: 'v' };
    expect(problemsOf(env)).toEqual([expect.stringMatching(/^listen\.requiredHeader\.name .*expected a field/)]);
  });
  test.each([' sesame', 'sesame ', 'sesamé'])('the required field value %j is refused', (value) => {
    const env = { SIDECAR_LISTEN_REQUIRED_HEADER_NAME: 'X-Key', SIDECAR_LISTEN_REQUIRED_HEADER_VALUE: value };
    expect(problemsOf(env)).toEqual([
      expect.stringMatching(/^listen\.requiredHeader\.value \(.*\): must be printable ASCII/),
    ]);
  });
});
