/** `init` as a person and a script use it: what it asks, what it writes, what is left when it is interrupted. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MAIN } from '../support/main-file.ts';
import { saveCertificate } from '../support/sandbox-certificate.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import type { Credential } from '../support/secrets.ts';
import { spawnSidecar } from '../support/sidecar-process.ts';
import { CTRL_C, CTRL_D, PROGRAM_COMMAND, openTerminal } from '../support/terminal.ts';
import type { Terminal } from '../support/terminal.ts';

const AUDIENCE = 'https://sales-api.sandbox.invalid/';
const PARTNER = ['--base-url', 'https://api.example.com/v1', '--auth-url', 'https://login.example.com'];
const CLIENT = ['--client-id', 'my-app', '--audience', 'https://api.example.com'];

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sidecar-init-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

async function startSandbox({ id, secret }: Credential) {
  const env = { SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' };
  const client = { SIDECAR_CLIENT_ID: id, SIDECAR_CLIENT_SECRET: secret };
  const sandbox = spawnSidecar({ name: 'sandbox-for-init', args: ['sandbox'], env: { ...env, ...client } });
  const [token, api] = await Promise.all([sandbox.waitForLine(/^token /), sandbox.waitForLine(/^api /)]);
  const authUrl = new URL(token.replace('token ', '')).origin;
  const trust = { SIDECAR_CA_FILE: saveCertificate(authUrl) };
  return { ...sandbox, authUrl, baseUrl: api.replace('api ', ''), trust };
}

/** Each question in turn: what it must show, what is typed. */
async function typeReplies(terminal: Terminal, turns: readonly (readonly [RegExp, string])[]): Promise<void> {
  for (const [question, keys] of turns) {
    await terminal.waitFor(question);
    terminal.type(keys);
  }
}

describe('on a terminal', () => {
  it('asks again for what will not do, hides the secret, and check finds the result fine', async () => {
    const folder = scratch();
    const credential = newCredential();
    await using sandbox = await startSandbox(credential);
    const { authUrl, baseUrl, trust } = sandbox;
    await using terminal = openTerminal({
      name: 'init',
      command: `${PROGRAM_COMMAND} init`,
      cwd: folder,
      env: trust,
    });
    await typeReplies(terminal, [
      [/Configuration file \[sidecar\.yaml\]: /, 'nowhere/at-all.yaml\n'],
      [/! the directory nowhere does not exist\s+Configuration file .*: /, '\n'],
      [/Base URL of the partner's API .*: /, '\n'],
      [/! a value is required\s+Base URL .*: /, 'http://api.example.com\n'],
      [/! http: is accepted for loopback hosts only[^]*Base URL .*: /, `${baseUrl}\n`],
      [/1 or 2 \[1\]: /, '3\n'],
      [/1 or 2 \[1\]: $/, '\n'],
      [/Base URL of the authorization server .*: /, `${authUrl}\n`],
      [/token endpoint \[\/oauth\/token\]: /, '\n'],
      [/Client id: /, `${credential.id}\n`],
      [/1, 2 or 3 \[1\]: /, '\n'],
      [/not shown\): /, '\n'],
      [/! a value is required\s+The client secret .*: /, `${credential.secret}\n`],
      [/Audience .*: /, `${AUDIENCE}\n`],
      [/Scopes.*: /, '\n'],
      [/Calls per second.* \[auto\]: /, '\n'],
      [
        /Written: sidecar\.yaml\nWritten: sidecar\.client-secret[^]*(?:node \S+main\.[jt]s|bearer-sidecar) --config sidecar\.yaml/,
        '',
      ],
      [/Run check on it now\? \[Y\/n\] /, '\n'],
      [/✔ token +token endpoint +\S+ ms +obtained/, ''],
    ]);
    expect(await terminal.exit).toBe(0);
    expect(terminal.screen()).not.toContain(credential.secret);

    expect(readdirSync(folder).sort()).toEqual(['sidecar.client-secret', 'sidecar.yaml']);
    for (const file of ['sidecar.client-secret', 'sidecar.yaml'])
      expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(folder, 'sidecar.client-secret'), 'utf8')).toBe(`${credential.secret}\n`);
    const yaml = readFileSync(join(folder, 'sidecar.yaml'), 'utf8');
    expect(yaml).toContain(`baseUrl: ${baseUrl}\n`);
    expect(yaml).not.toContain(credential.secret);
  });

  it.each([
    ['Ctrl-C', CTRL_C],
    ['Ctrl-D', CTRL_D],
  ])('%s while the secret is typed leaves nothing behind', async (name, key) => {
    const folder = scratch();
    const { secret } = newCredential();
    const command = `${PROGRAM_COMMAND} init ${[...PARTNER, ...CLIENT].join(' ')}`;
    await using terminal = openTerminal({ name: `init-${name}`, command, cwd: folder });
    await typeReplies(terminal, [
      [/Configuration file .*: /, 'other.yaml\n'],
      [/token endpoint .*: /, '\n'],
      [/new file that only you can read: other\.client-secret\n[^]*\[1\]: /, '1\n'],
      // Ctrl-D ends at the beginning of a line only, as everywhere.
      [/not shown\): /, key === CTRL_C ? `${secret}${key}` : key],
      [/bearer-sidecar: cancelled; nothing was written/, ''],
    ]);
    expect(await terminal.exit).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
    expect(terminal.screen()).not.toContain(secret);
  });

  it('leaves nothing when its input ends', async () => {
    const folder = scratch();
    await using terminal = openTerminal({ name: 'init-end', command: `${PROGRAM_COMMAND} init`, cwd: folder });
    await terminal.waitFor(/Configuration file .*: /);
    terminal.endInput();
    expect(await terminal.exit).not.toBe(0);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('asks before it overwrites a file, and accepts another name', async () => {
    const folder = scratch();
    writeFileSync(join(folder, 'sidecar.yaml'), 'mine');
    const command = `${PROGRAM_COMMAND} init ${[...PARTNER, ...CLIENT].join(' ')} --token-path /token --rate 5`;
    await using terminal = openTerminal({ name: 'init-over', command, cwd: folder });
    await typeReplies(terminal, [
      [/Configuration file .*: /, '\n'],
      [/sidecar\.yaml exists\. Overwrite it\? \[y\/N\] /, '\n'],
      [/Configuration file .*: /, 'b.yaml\n'],
      [/\[1\]: /, '3\n'],
      [/Next:\n {2}export SIDECAR_CLIENT_SECRET=/, ''],
    ]);
    expect(await terminal.exit).toBe(0);
    expect(readFileSync(join(folder, 'sidecar.yaml'), 'utf8')).toBe('mine');
    expect(readFileSync(join(folder, 'b.yaml'), 'utf8')).toContain('rate: 5\n');
  });

  it('overwrites the files that it was allowed to, after asking for each', async () => {
    const folder = scratch();
    for (const name of ['sidecar.yaml', 'sidecar.client-secret']) writeFileSync(join(folder, name), 'old');
    const { secret } = newCredential();
    const command = `${PROGRAM_COMMAND} init ${[...PARTNER, ...CLIENT].join(' ')} --token-path /token --rate 5`;
    await using terminal = openTerminal({ name: 'init-write-over', command, cwd: folder });
    await typeReplies(terminal, [
      [/Configuration file .*: /, '\n'],
      [/sidecar\.yaml exists\. Overwrite it\? \[y\/N\] /, 'y\n'],
      [/\[1\]: /, '1\n'],
      [/sidecar\.client-secret exists\. Overwrite it\? \[y\/N\] /, 'y\n'],
      [/not shown\): /, `${secret}\n`],
      [/Run check on it now\? \[Y\/n\] /, 'n\n'],
    ]);
    expect(await terminal.exit).toBe(0);
    expect(readFileSync(join(folder, 'sidecar.client-secret'), 'utf8')).toBe(`${secret}\n`);
    expect(readFileSync(join(folder, 'sidecar.yaml'), 'utf8')).toContain('rate: 5\n');
    expect(readdirSync(folder).sort()).toEqual(['sidecar.client-secret', 'sidecar.yaml']);
  });

  it('asks nothing with --yes', async () => {
    const folder = scratch();
    const command = `${PROGRAM_COMMAND} init --yes ${[...PARTNER, ...CLIENT].join(' ')}`;
    await using terminal = openTerminal({ name: 'init-yes', command, cwd: folder });
    expect(await terminal.exit).toBe(0);
    expect(readdirSync(folder)).toEqual(['sidecar.yaml']);
  });
});

describe('a curl command of the partner', () => {
  /** As partners write it, over several lines. */
  const command = ({ id, secret }: Credential, tokenUrl: string, newline = ' \\\n  '): string =>
    [
      `curl -X POST '${tokenUrl}'`,
      `-H 'Authorization: Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}'`,
      `--data-urlencode 'audience=${AUDIENCE}'`,
      `-d 'grant_type=client_credentials'`,
    ].join(newline);

  it('pasted at a question is not shown, and check finds a token with it', async () => {
    const folder = scratch();
    const credential = newCredential();
    await using sandbox = await startSandbox(credential);
    const start = `${PROGRAM_COMMAND} init --base-url ${sandbox.baseUrl}`;
    await using terminal = openTerminal({ name: 'init-curl', command: start, cwd: folder, env: sandbox.trust });
    await typeReplies(terminal, [
      [/Configuration file .*: /, '\n'],
      [/1 or 2 \[1\]: /, '1\n'],
      [/Base URL of the authorization server .*: /, 'http://login.example.com\n'],
      [
        /! http: is accepted for loopback hosts only[^]*Base URL of the authorization server .*: /,
        `${command(credential, `${sandbox.authUrl}/oauth/token`)}\n`,
      ],
      [/token URL +\S+\/oauth\/token\n[^]*client secret +taken over[^]*Calls per second.* \[auto\]: /, '\n'],
      [/Written: sidecar\.yaml\nWritten: sidecar\.client-secret/, ''],
      [/Run check on it now\? \[Y\/n\] /, '\n'],
      [/✔ token +token endpoint +\S+ ms +obtained/, ''],
      [/Next: \S*(?:node \S+main\.[jt]s|bearer-sidecar) --config sidecar\.yaml/, ''],
    ]);
    expect(await terminal.exit).toBe(0);
    expect(terminal.screen()).not.toContain(Buffer.from(`${credential.id}:${credential.secret}`).toString('base64'));
    expect(terminal.screen()).not.toContain(credential.secret);
    expect(statSync(join(folder, 'sidecar.client-secret')).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(folder, 'sidecar.client-secret'), 'utf8')).toBe(`${credential.secret}\n`);
    expect(readFileSync(join(folder, 'sidecar.yaml'), 'utf8')).not.toContain(credential.secret);
  });

  it('of a call with an API key leaves the key in a file, pasted or typed', async () => {
    const key = `key-${randomBytes(12).toString('hex')}`;
    registerSecret('an API key', key);
    for (const [name, base, turns] of [
      ['pasted', `curl https://api.example.com/v1/quotes -H 'X-Api-Key: ${key}' -H 'X-Tenant: t-1'\n`, []],
      [
        'typed',
        'https://api.example.com\n',
        [
          [/1 or 2 \[1\]: /, '2\n'],
          [/sidecar\.token\n[^]*1 or 2 \[1\]: /, '\n'],
          [/The token \(not shown\): /, `${key}, and more\n`],
          [/! has characters [^]*The token \(not shown\): /, `${key}\n`],
        ],
      ],
    ] as const) {
      const folder = scratch();
      await using terminal = openTerminal({ name: `init-${name}`, command: `${PROGRAM_COMMAND} init`, cwd: folder });
      await typeReplies(terminal, [
        [/Configuration file .*: /, '\n'],
        [/Base URL of the partner's API .*: /, base],
        ...turns,
        [/Calls per second.* \[auto\]: /, '\n'],
        [/Written: sidecar\.yaml.*\nWritten: sidecar\.token/, ''],
        [/Run check on it now\? \[Y\/n\] /, 'n\n'],
      ]);
      expect(await terminal.exit).toBe(0);
      expect(terminal.screen()).not.toContain(key);
      expect(statSync(join(folder, 'sidecar.token')).mode & 0o777).toBe(0o600);
      expect(readFileSync(join(folder, 'sidecar.token'), 'utf8')).toBe(`${key}\n`);
      const yaml = readFileSync(join(folder, 'sidecar.yaml'), 'utf8');
      expect(yaml).toContain('method: static\n');
      expect(yaml).toContain(`tokenFile: ${join(folder, 'sidecar.token')}\n`);
      if (name === 'pasted') expect(yaml).toContain('tokenHeader: X-Api-Key\n');
      expect(yaml).not.toContain(key);
    }
  });

  it('that contradicts an option leaves no file behind', async () => {
    const folder = scratch();
    writeFileSync(join(folder, 'secret.txt'), 'a-secret');
    const start = `${PROGRAM_COMMAND} init --client-secret-file secret.txt`;
    await using terminal = openTerminal({ name: 'init-contradiction', command: start, cwd: folder });
    await typeReplies(terminal, [
      [/Configuration file .*: /, '\n'],
      [/Base URL of the partner's API .*: /, "curl https://api.example.com/v1/quotes -H 'X-Api-Key: a-key'\n"],
      [/Calls per second.* \[auto\]: /, '\n'],
      [/auth\.clientSecret: found in [^]* static sends no secret/, ''],
    ]);
    expect(await terminal.exit).toBe(2);
    expect(readdirSync(folder)).toEqual(['secret.txt']);
  });

  it('of a call with a key in the query leaves the key in a file, and needs no token', () => {
    const folder = scratch();
    const key = `key-${randomBytes(12).toString('hex')}`;
    registerSecret('an API key', key);
    const { code, stdout } = pipe(folder, `curl "https://api.example.com/v1/quotes?city=Wien&api_key=${key}"`, []);
    expect(code).toBe(0);
    expect(stdout).not.toContain(key);
    expect(readFileSync(join(folder, 'sidecar.api_key'), 'utf8')).toBe(`${key}\n`);
    const yaml = readFileSync(join(folder, 'sidecar.yaml'), 'utf8');
    expect(yaml).toContain('method: static\n');
    expect(yaml).toContain(`file: ${join(folder, 'sidecar.api_key')}\n`);
    expect(yaml).not.toContain('tokenFile: ');
  });

  it('of a call with a placeholder names the file that the key belongs into', () => {
    const folder = scratch();
    const { code, stdout, stderr } = pipe(folder, 'curl -H "X-Api-Key: $KEY" https://api.example.com/v1/quotes', []);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('Write the token into sidecar.token, which does not exist yet');
    expect(readdirSync(folder)).toEqual(['sidecar.yaml']);
  });

  it('with a JSON body of other names is a request without client authentication', () => {
    const folder = scratch();
    const { secret } = newCredential();
    const key = secret.replace('ü', '');
    const text = `curl https://login.example.com/token --json '{"apiKey":"${key}","kind":"app"}'`;
    const { code, stdout, stderr } = pipe(folder, text, ['--base-url', 'https://api.example.com']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).not.toContain(key);
    const yaml = readFileSync(join(folder, 'sidecar.yaml'), 'utf8');
    for (const line of ['method: none', 'bodyFormat: json', 'grantType: ""', 'kind: app']) expect(yaml).toContain(line);
    expect(statSync(join(folder, 'sidecar.yaml')).mode & 0o777).toBe(0o600);
  });

  /** Runs init in a folder with a text as its standard input. */
  function pipe(folder: string, text: string, args: readonly string[]) {
    const run = spawnSync(process.execPath, [join(process.cwd(), MAIN), 'init', ...args], {
      cwd: folder,
      input: text,
      encoding: 'utf8',
    });
    return { code: run.status, stdout: run.stdout, stderr: run.stderr };
  }

  it('piped to it leaves the secret in a file that only its owner can read', () => {
    const folder = scratch();
    const credential = newCredential();
    const text = command(credential, 'https://login.example.com/oauth2/v1/token?x=1');
    const { code, stdout, stderr } = pipe(folder, text, ['--base-url', 'https://api.example.com/v1']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout + stderr).not.toContain(credential.secret);
    expect(stdout + stderr).not.toContain(credential.id);
    const yaml = readFileSync(join(folder, 'sidecar.yaml'), 'utf8');
    expect(yaml).toContain('url: https://login.example.com\n');
    expect(yaml).toContain('tokenPath: /oauth2/v1/token?x=1\n');
    expect(yaml).toContain(`clientId: ${credential.id}\n`);
    expect(yaml).not.toContain(credential.secret);
    expect(statSync(join(folder, 'sidecar.client-secret')).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(folder, 'sidecar.client-secret'), 'utf8')).toBe(`${credential.secret}\n`);
    const again = pipe(folder, text, ['--base-url', 'https://api.example.com/v1']);
    expect([again.code, again.stderr.trim().split('\n').length]).toEqual([2, 2]);
  });

  it('with a key of a gateway keeps the key to itself: only this user can read the configuration file', () => {
    const folder = scratch();
    const { secret } = newCredential();
    const text = `curl -u a:b -H 'X-Api-Key: ${secret.replace('ü', '')}' -d 'grant_type=client_credentials' https://login.example.com/token`;
    const { code, stdout } = pipe(folder, text, ['--base-url', 'https://api.example.com', '--scope', 'read']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/auth\.extraHeaders +X-Api-Key\n/);
    expect(stdout).not.toContain(secret.replace('ü', ''));
    expect(statSync(join(folder, 'sidecar.yaml')).mode & 0o777).toBe(0o600);
  });

  it('executes nothing of it, and names $( )', () => {
    const folder = scratch();
    const text = 'curl -u "a:$(touch executed)`touch executed`" https://login.example.com/token; touch executed\n';
    const { code, stderr } = pipe(folder, text, ['--base-url', 'https://api.example.com', '--scope', 'read']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('$( )')]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('that calls the API with HTTP Basic is no token request: its id and secret go into a file', () => {
    const folder = scratch();
    const { id, secret } = newCredential();
    const text = `curl -X POST https://api.example.com/Messages.json -u '${id}:${secret}' --data-urlencode "Body=Hi"`;
    const { code, stdout, stderr } = pipe(folder, text, ['--yes']);
    expect([code, stderr]).toEqual([0, '']);
    const token = Buffer.from(`${id}:${secret}`).toString('base64');
    expect(stdout).not.toContain(token);
    expect(readFileSync(join(folder, 'sidecar.token'), 'utf8')).toBe(`${token}\n`);
    const yaml = readFileSync(join(folder, 'sidecar.yaml'), 'utf8');
    for (const line of ['method: static', 'tokenPrefix: "Basic "']) expect(yaml).toContain(line);
  });

  it('that shows neither a token request nor an API call is refused, and on a terminal asked about', async () => {
    const text = `curl https://api.example.com/auth/users -u my-app:sesame-open --json '{"name":"x"}'`;
    const folder = scratch();
    const { code, stderr } = pipe(folder, text, ['--yes']);
    expect([code, stderr.trim().split('\n').length]).toEqual([2, 1]);
    expect(stderr).toContain('does not show whether it requests a token');
    expect(readdirSync(folder)).toEqual([]);
    await using terminal = openTerminal({ name: 'init-unclear', command: `${PROGRAM_COMMAND} init`, cwd: folder });
    await typeReplies(terminal, [
      [/Configuration file .*: /, '\n'],
      [/Base URL of the partner's API .*: /, `${text}\n`],
      [/What does the command do\?[^]*1 or 2 \[1\]: /, '\n'],
      [/auth\.method +static[^]*Calls per second.* \[auto\]: /, '\n'],
      [/Run check on it now\? \[Y\/n\] /, 'n\n'],
    ]);
    expect(await terminal.exit).toBe(0);
    expect(readdirSync(folder).sort()).toEqual(['sidecar.token', 'sidecar.yaml']);
  });

  it.each([
    ['an open quote', "curl -u 'a:b"],
    ['a NUL', 'curl -u a:b\0c https://login.example.com/token'],
    ['a megabyte', `curl -d '${'x'.repeat(1024 * 1024)}'`],
    ['no command at all', 'hello'],
  ])('%s is one fault in one line, and nothing is written', (_, text) => {
    const folder = scratch();
    const { code, stderr } = pipe(folder, text, ['--base-url', 'https://api.example.com']);
    expect([code, stderr.trim().split('\n').length]).toEqual([2, 1]);
    expect(stderr).toMatch(/^bearer-sidecar: the pasted text /);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('may be a token URL, as an option or piped', () => {
    for (const [text, args] of [
      ['https://login.example.com/oauth2/token\n', ['--client-id', 'my-app']],
      ['', ['--client-id', 'my-app', '--auth-url', 'https://login.example.com/oauth2/token']],
    ] as const) {
      const folder = scratch();
      expect(pipe(folder, text, [...args, '--base-url', 'https://api.example.com', '--scope', 'read']).code).toBe(0);
      const yaml = readFileSync(join(folder, 'sidecar.yaml'), 'utf8');
      expect(yaml).toContain('url: https://login.example.com\n');
      expect(yaml).toContain('tokenPath: /oauth2/token\n');
    }
  });

  it('may be the URL of published metadata, which is an issuer', () => {
    const folder = scratch();
    const url = 'https://login.example.com/realms/x/.well-known/openid-configuration';
    const args = ['--client-id', 'my-app', '--base-url', 'https://api.example.com', '--scope', 'read'];
    expect(pipe(folder, url, args).code).toBe(0);
    const yaml = readFileSync(join(folder, 'sidecar.yaml'), 'utf8');
    expect(yaml).toContain('issuer: https://login.example.com/realms/x\n');
    expect(yaml).not.toMatch(/^ {2}(?:url|tokenPath):/m);
  });
});

describe('for a script', () => {
  const init = async (args: readonly string[]) => {
    await using process = spawnSidecar({ name: 'init-script', args: ['init', ...args] });
    const { code } = await process.exit;
    return { code, stdout: process.stdout(), lines: process.stderr().trim().split('\n') };
  };

  it('writes a file with which check finds a token', async () => {
    const folder = scratch();
    const credential = newCredential();
    await using sandbox = await startSandbox(credential);
    const { authUrl, baseUrl, trust } = sandbox;
    const [output, secretFile] = [join(folder, 'partner.yaml'), join(folder, 'secret')];
    writeFileSync(secretFile, credential.secret, { mode: 0o600 });
    const urls = ['--base-url', baseUrl, '--auth-url', authUrl, '--audience', AUDIENCE];
    const client = ['--client-id', credential.id, '--client-secret-file', secretFile];
    const written = await init([...urls, ...client, '--output', output]);
    expect(written).toMatchObject({ code: 0, lines: [''] });
    expect(written.stdout).toMatch(/(?:main\.[jt]s|bearer-sidecar) check --config \S+partner\.yaml\n/);

    await using check = spawnSidecar({ name: 'check-after-init', args: ['check', '--config', output], env: trust });
    expect(await check.exit).toEqual({ code: 0, signal: null });
    expect(check.stdout()).toMatch(/^ok +token +token endpoint/m);
  });

  it('names each missing or wrong option in a line, and writes nothing', async () => {
    const output = join(scratch(), 'sidecar.yaml');
    const { code, lines } = await init(['--output', output, '--base-url', 'api.example.com', '--rate', 'fast']);
    expect(code).toBe(2);
    expect(lines.map((line) => line.split(':')[1]?.trim())).toEqual([
      '--base-url',
      '--auth-url',
      '--client-id',
      '--rate',
    ]);
    expect(existsSync(output)).toBe(false);
  });

  it('does not change an existing file without --force', async () => {
    const output = join(scratch(), 'sidecar.yaml');
    writeFileSync(output, 'mine');
    const refused = await init([...PARTNER, ...CLIENT, '--output', output]);
    expect(refused).toMatchObject({ code: 2, lines: [expect.stringContaining('exists; --force overwrites it')] });
    expect(readFileSync(output, 'utf8')).toBe('mine');
    expect(await init([...PARTNER, ...CLIENT, '--output', output, '--force'])).toMatchObject({ code: 0 });
    expect(readFileSync(output, 'utf8')).toContain('clientId: my-app\n');
  });

  it('names a missing directory in one line', async () => {
    const output = join(scratch(), 'missing', 'sidecar.yaml');
    const { code, lines } = await init([...PARTNER, ...CLIENT, '--output', output]);
    expect([code, lines]).toEqual([1, [expect.stringContaining('its directory does not exist; nothing was written')]]);
  });
});
