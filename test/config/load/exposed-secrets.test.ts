/** Secret files that other users can read: warned about, never refused. */
import { chmodSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { adviseOnFileMode, isExposed } from '../../../src/config/load/exposed-secrets.ts';
import { loadConfig } from '../../../src/config/load/load.ts';
import { BASE_ENV, scratchFile } from '../base-env.ts';

const SECRET = 'correct-horse-battery-staple';

function warningsOf(env: Record<string, string>, file?: string): readonly string[] {
  const loaded = loadConfig({ env: { ...BASE_ENV, ...env }, file });
  if (!loaded.ok) throw new Error('refused');
  return loaded.warnings;
}

function fileOfMode(mode: number, contents = SECRET): string {
  const path = scratchFile(contents);
  chmodSync(path, mode);
  return path;
}

describe('a secret in a file that others can read is warned about, and accepted', () => {
  test.each([0o644, 0o640, 0o604, 0o660])('the client secret, mode %o', (mode) => {
    const path = fileOfMode(mode);
    const warnings = warningsOf({ SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: path });
    expect(warnings).toEqual([
      `auth.clientSecretFile (SIDECAR_CLIENT_SECRET_FILE): the file "${path}" can be read by other users ` +
        `(mode 0${mode.toString(8)}); chmod 600 it`,
    ]);
    expect(warnings.join()).not.toContain(SECRET);
  });
  test('the value of the required header', () => {
    const yaml = `listen: { requiredHeader: { name: x-key, valueFile: ${fileOfMode(0o644)} } }`;
    expect(warningsOf({}, fileOfMode(0o600, yaml))).toEqual([
      expect.stringContaining('listen.requiredHeader.valueFile'),
    ]);
  });
  test('a configuration file with a secret in it', () => {
    const yaml = `auth: { clientSecret: ${SECRET} }`;
    const warnings = warningsOf({ SIDECAR_CLIENT_SECRET: '' }, fileOfMode(0o644, yaml));
    expect(warnings).toEqual([expect.stringMatching(/^auth\.clientSecret .* can be read by other users/)]);
  });
});

describe('no warning', () => {
  test.each([0o600, 0o400])('for a file of mode %o', (mode) => {
    expect(warningsOf({ SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: fileOfMode(mode) })).toEqual([]);
  });
  test('for a configuration file without a secret', () => {
    expect(warningsOf({}, fileOfMode(0o644, 'throttle: { rate: 5 }'))).toEqual([]);
  });
});

describe('the advice leaves the file readable for this process', () => {
  test('its own', () => {
    expect(adviseOnFileMode({ mode: 0o100644, uid: 1000, realPath: '/s' }, 1000)).toBe('chmod 600 it');
  });
  test("another user's", () => {
    expect(adviseOnFileMode({ mode: 0o100644, uid: 0, realPath: '/s' }, 1000)).toBe(
      'it belongs to user 0: chown 1000 it and chmod 400 it, or give it to a group of user 1000 and chmod 640 it',
    );
  });
});

describe('who can read a file', () => {
  const OWN = 1000;
  const KUBERNETES = '/run/secrets/sidecar/..2026_11_21_10_00_00.123456789/client-secret';
  test.each([
    ['of this user, for this user alone', { mode: 0o100600, uid: OWN, realPath: '/s' }, false],
    ['of this user, for its group', { mode: 0o100640, uid: OWN, realPath: '/s' }, true],
    ['of root, handed to the group', { mode: 0o100640, uid: 0, realPath: '/s' }, false],
    ['of root, for everybody', { mode: 0o100644, uid: 0, realPath: '/s' }, true],
    ['of root, in a secret volume of Kubernetes', { mode: 0o100644, uid: 0, realPath: KUBERNETES }, false],
    ['of another user, dressed up as such a volume', { mode: 0o100644, uid: 7, realPath: KUBERNETES }, true],
  ])('%s', (_, access, exposed) => {
    expect(isExposed(access, OWN)).toBe(exposed);
  });
  test('root in a container may mount the volume for itself only', () => {
    expect(isExposed({ mode: 0o100644, uid: 0, realPath: KUBERNETES }, 0)).toBe(true);
  });
  test('ignores modes on systems without them', () => {
    expect(isExposed({ mode: 0o100666, uid: 0, realPath: 'C:\\s' }, undefined)).toBe(false);
  });
});
