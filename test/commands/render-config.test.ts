/** `bearer-sidecar config`: output, masking, errors. */
import { rootCertificates } from 'node:tls';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { renderConfig } from '../../src/commands/render-config.ts';
import { SETTINGS } from '../../src/config/schema/schema.ts';
import { BASE_ENV, scratchFile } from '../config/base-env.ts';

test('prints one line per setting, with value and origin', () => {
  const file = scratchFile('throttle:\n  burst: 3\n');
  const { exitCode, stdout, stderr } = renderConfig({ env: { ...BASE_ENV, SIDECAR_RATE: '2.5' }, file });
  expect([exitCode, stderr]).toEqual([0, '']);
  expect(stdout).toContain('  rate: 2.5 # environment SIDECAR_RATE\n');
  expect(stdout).toContain(`  burst: 3 # file ${file}\n`);
  expect(stdout).toContain('  maxInFlight: 64 # default\n');
  expect(stdout).toContain('  allowedHosts: [ localhost, 127.0.0.1, "[::1]" ] # default\n');
  expect(stdout).toContain('  audience: https://api.example.com # environment SIDECAR_AUDIENCE\n');
  expect(stdout.match(/ # (?:default|file|environment)/g)).toHaveLength(SETTINGS.size);
});

test('secrets are masked, in place or in a file; the client id is shown', () => {
  const inPlace = {
    ...BASE_ENV,
    SIDECAR_LISTEN_REQUIRED_HEADER_NAME: 'X-Key',
    SIDECAR_LISTEN_REQUIRED_HEADER_VALUE: 'sesame-of-the-listener',
  };
  const { stdout } = renderConfig({ env: inPlace });
  expect(parse(stdout)).toMatchObject({
    auth: { clientId: BASE_ENV.SIDECAR_CLIENT_ID, clientSecret: '********', clientSecretFile: null },
    listen: { requiredHeader: { name: 'X-Key', value: '********' } },
  });
  for (const secret of [BASE_ENV.SIDECAR_CLIENT_SECRET, 'sesame']) expect(stdout).not.toContain(secret);

  const path = scratchFile('sesame-of-the-file\n');
  const fromFile = renderConfig({ env: { ...BASE_ENV, SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: path } });
  expect(fromFile.stdout).toContain(`clientSecretFile: ${path} # environment`);
  expect(fromFile.stdout).not.toContain('sesame');
});

test('the password of an audience is masked', () => {
  const { stdout } = renderConfig({ env: { ...BASE_ENV, SIDECAR_AUDIENCE: 'https://user:sesame@api.example.com/' } });
  expect(stdout).toContain('audience: https://********@api.example.com/ #');
});

test('marks the inherited auth.caFile', () => {
  const env = { ...BASE_ENV, SIDECAR_CA_FILE: scratchFile(rootCertificates[0] ?? '') };
  expect(renderConfig({ env }).stdout).toContain('  caFile: null # default, as upstream.caFile\n');
  expect(renderConfig({ env: BASE_ENV }).stdout).not.toContain('as upstream.caFile');
});

test('an invalid configuration: its problems on stderr, nothing on stdout, exit 2', () => {
  const secret = 'sesame:of\u0000the-test';
  const { exitCode, stdout, stderr } = renderConfig({
    env: {
      ...BASE_ENV,
      SIDECAR_BASE_URL: `https://user:${secret}@api.example.com`,
      SIDECAR_CLIENT_ID: secret,
      SIDECAR_CLIENT_SECRET: secret,
      SIDECAR_REDIS_URL: `http://user:sesame@host`,
      SIDECAR_RATE: 'fast',
      SIDECAR_BASEURL: secret,
    },
  });
  expect([exitCode, stdout]).toEqual([2, '']);
  expect(stderr.trimEnd().split('\n')).toEqual([
    'bearer-sidecar: warning: environment variable SIDECAR_BASEURL is not a setting; did you mean SIDECAR_BASE_URL?',
    expect.stringMatching(/^bearer-sidecar: upstream\.baseUrl \(SIDECAR_BASE_URL\): /),
    expect.stringMatching(/^bearer-sidecar: auth\.clientId \(SIDECAR_CLIENT_ID\): /),
    expect.stringMatching(/^bearer-sidecar: auth\.clientSecret \(SIDECAR_CLIENT_SECRET\): /),
    'bearer-sidecar: throttle.rate (SIDECAR_RATE): found "fast"; expected auto, or a number of permits per second above 0 and up to 1000000 (decimals allowed)',
    expect.stringMatching(/^bearer-sidecar: fleet\.redisUrl \(SIDECAR_REDIS_URL\): /),
  ]);
  expect(stderr).not.toContain('sesame');
  expect(stderr).not.toMatch(/\n\s+at /);
});

test.each([
  ['throttle.burst', 'throttle:\n  burst: 1 # default\n'],
  [
    'listen.requiredHeader',
    'listen:\n  requiredHeader:\n    name: null # default\n    value: null # default\n    valueFile: null # default\n',
  ],
  ['allowInsecureHttp', 'allowInsecureHttp: false # default\n'],
])('prints %s only', (part, stdout) => {
  expect(renderConfig({ env: BASE_ENV }, part)).toEqual({ exitCode: 0, stdout, stderr: '' });
});

test.each([
  ['throtle', 'unknown key "throtle"; did you mean throttle?'],
  ['throttle.brust', 'unknown key "throttle.brust"; did you mean throttle.burst?'],
  ['route', 'unknown key "route"; did you mean routes?'],
  ['throttle.', 'unknown key "throttle."; did you mean throttle?'],
  ['colour\n', String.raw`unknown key "colour\n"; bearer-sidecar config shows all of them`],
])('refuses %j: %s', (part, message) => {
  expect(renderConfig({ env: BASE_ENV }, part)).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: `bearer-sidecar: ${message}\n`,
  });
});
