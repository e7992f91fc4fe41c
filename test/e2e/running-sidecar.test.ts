/** `status` and `reload` against a running sidecar: what they print, and their exit codes. */
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { writeConfigFile } from '../support/config-file.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

const BEFORE = 'throttle: { rate: 5 }\n';

/** A ready sidecar; with a configuration file unless `yaml` is undefined. */
async function startReady(name: string, yaml?: string) {
  const stack = new AsyncDisposableStack();
  const tokens = stack.use(await startTokenServer());
  const file = yaml === undefined ? undefined : stack.use(await writeConfigFile(yaml));
  const env: Record<string, string> = baseSettings('http://127.0.0.1:1/v1', tokens.url, newCredential());
  if (file !== undefined) env.SIDECAR_CONFIG = file.path;
  const sidecar = stack.use(await startSidecar({ name, env }));
  await waitUntilReady(sidecar);
  const admin = new URL(sidecar.adminUrl).host;
  return { sidecar, admin, file, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

async function runProgram(...args: string[]) {
  await using process = spawnSidecar({ name: args.slice(0, 1).join('-'), args });
  const { code } = await process.exit;
  return { code, stdout: process.stdout(), stderr: process.stderr() };
}

async function startOtherProgram(body: string): Promise<{ readonly server: Server; readonly host: string }> {
  const server = createServer((_, response) => response.end(body));
  const { host } = new URL(await listenOnLoopback(server));
  onTestFinished(() => closeServer(server));
  return { server, host };
}

describe('reload', () => {
  it('waits for the outcome: taken over, refused, invalid', async () => {
    await using world = await startReady('reload-command', BEFORE);
    const reload = () => runProgram('reload', '--admin-listen', world.admin);

    await world.file?.replace('throttle: { rate: 7 }\n');
    expect(await reload()).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^reloaded: throttle\.rate: 5 → 7 \(file .*\)\n$/) as string,
      stderr: '',
    });
    expect(await reload()).toMatchObject({ code: 0, stdout: 'reloaded: nothing has changed\n' });

    await world.file?.replace('throttle: { rate: 8 }\nshutdown: { drainMs: 1 }\n');
    expect(await reload()).toEqual({
      code: 1,
      stdout: '',
      stderr: 'bearer-sidecar: the configuration was not reloaded; a restart is needed for: shutdown.drainMs\n',
    });

    await world.file?.replace('throttle: { rate: fast }\n');
    const invalid = await reload();
    expect(invalid.code).toBe(1);
    expect(invalid.stderr).toMatch(
      /^bearer-sidecar: the configuration was not reloaded; it is invalid: throttle\.rate \(SIDECAR_RATE\): found "fast".*\n$/,
    );
    const { throttle } = (await (await fetch(`${world.sidecar.adminUrl}/status`)).json()) as {
      throttle: { rate: number };
    };
    expect(throttle.rate).toBe(7);
  });

  it('sends no signal to a sidecar without a configuration file', async () => {
    await using world = await startReady('reload-without-file');
    expect(await runProgram('reload', '--admin-listen', world.admin)).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'bearer-sidecar: the sidecar has no configuration file: nothing can be reloaded; restart it with other settings\n',
    });
  });

  it('sends no signal to a process that does not listen on the admin port', async () => {
    await using world = await startReady('reload-forwarded', BEFORE);
    const status = (await (await fetch(`${world.sidecar.adminUrl}/status`)).json()) as object;
    // As behind a forwarded port: the id is that of another process on this machine.
    const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    onTestFinished(() => void bystander.kill('SIGKILL'));
    const { host } = await startOtherProgram(JSON.stringify({ ...status, pid: bystander.pid }));
    const { code, stderr } = await runProgram('reload', '--admin-listen', host);
    expect(code).toBe(1);
    expect(stderr).toContain(`process ${String(bystander.pid)}, which /status names, does not listen on ${host} here`);
    expect([bystander.exitCode, bystander.signalCode]).toEqual([null, null]);
  });

  it.each(['-1', '0', '1.5', '"1"', 'null'])('sends no signal to a process id of %s', async (pid) => {
    await using world = await startReady('reload-pid', BEFORE);
    const status = (await (await fetch(`${world.sidecar.adminUrl}/status`)).json()) as object;
    const { host } = await startOtherProgram(JSON.stringify({ ...status, pid: JSON.parse(pid) as unknown }));
    const { code, stderr } = await runProgram('reload', '--admin-listen', host);
    expect([code, stderr]).toEqual([1, expect.stringContaining('does not state its process id')]);
  });

  it('refuses the admin port of another machine', async () => {
    expect(await runProgram('reload', '--admin-listen', '192.0.2.1:19464')).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'bearer-sidecar: admin.address (SIDECAR_ADMIN_LISTEN): found 192.0.2.1:19464, which is not an address of this machine; run reload where the sidecar runs\n',
    });
  });

  it('where nothing listens exits with 1', async () => {
    const { code, stderr } = await runProgram('reload', '--admin-listen', 'localhost:1');
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^bearer-sidecar: the admin port does not respond \(.*ECONNREFUSED.*\)\n$/),
    ]);
  });
});

describe('status', () => {
  it('shows a running sidecar, and its document', async () => {
    await using world = await startReady('status-command', BEFORE);
    const { code, stdout, stderr } = await runProgram('status', '--admin-listen', world.admin);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^bearer-sidecar \d+\.\d+\.\d+ {2}Ready\nup \d+ s, process \d+\n/);
    expect(stdout).toContain(`process ${String(world.sidecar.pid)}\n`);
    expect(stdout).toMatch(/\n {2}token {5}valid for (?:\d+ min|1 h)/);
    expect(stdout).toMatch(
      /\n {2}limit {5}5 requests per second, configured\n {2}queue {5}0 waiting, 0 in flight of at most 64\n$/,
    );

    const limits = await runProgram('status', '--limits', '--admin-listen', world.admin);
    expect(limits.stdout).toMatch(
      /^bearer-sidecar \S+ {2}rate limits as seen at \S+\nup \d+ s\n\n {2}rate {6}5 per second, configured\n/,
    );

    const json = await runProgram('status', '--json', '--admin-listen', world.admin);
    expect(json.code).toBe(0);
    expect(JSON.parse(json.stdout)).toMatchObject({ pid: world.sidecar.pid, configuration: { reloadable: true } });
  });

  it('without a token exits with 1 and the reason', async () => {
    const env = baseSettings('http://127.0.0.1:1/v1', 'http://127.0.0.1:1', newCredential());
    await using sidecar = await startSidecar({ name: 'status-no-token', env });
    const { code, stdout } = await runProgram('status', '--admin-listen', new URL(sidecar.adminUrl).host);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^bearer-sidecar \S+ {2}(?:No token: |Starting)/);
  });

  it.each(['', '<html>', '{}', '[]', '{"version":"1","tokens":[],"throttles":[]}'])(
    'of another program exits with 1: %j',
    async (body) => {
      const { host } = await startOtherProgram(body);
      expect(await runProgram('status', '--admin-listen', host)).toEqual({
        code: 1,
        stdout: '',
        stderr: 'bearer-sidecar: what responds is not a bearer-sidecar: its /status has another form\n',
      });
    },
  );

  it('prints control characters of another program escaped', async () => {
    const { host } = await startOtherProgram('bearer-sidecar \u001b[2J\nline');
    const { stdout } = await runProgram('status', '--admin-listen', host);
    expect(stdout).toBe('bearer-sidecar \\u{1b}[2J\nline\n');
  });
});
