/**
 * A container engine for one try: podman with its configuration, images and containers in a folder of its own, which leaves
 * nothing behind. It needs root and no service, registry or systemd.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** How a command ended that may fail. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Podman extends Disposable {
  /** With it, the command `podman` uses the same images. */
  readonly env: NodeJS.ProcessEnv;
  /** @throws Error with what podman said when it fails */
  readonly run: (...args: string[]) => string;
  /** As `run`, for what may fail. */
  readonly tryRun: (...args: string[]) => CommandResult;
  /** As `run`, with everything that is printed going to stderr: for what takes long. */
  readonly runPrinting: (...args: string[]) => void;
  /**
   * Serves the API of Docker until the end.
   * @returns the value of DOCKER_HOST for its clients, when it accepts connections
   */
  readonly startService: () => Promise<string>;
}

/** What a user's engine would have by default may be more than this process is allowed to give. */
function containersConf(folder: string): string {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const hard = (name: string): number => Number(new RegExp(`^${name} +\\S+ +(\\d+)`, 'm').exec(limits)?.[1] ?? 1024);
  const files = hard('Max open files');
  const processes = Math.min(hard('Max processes'), 32_768);
  return `
[containers]
default_ulimits = ["nofile=${files}:${files}", "nproc=${processes}:${processes}"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
[network]
network_config_dir = "${join(folder, 'networks')}"
`;
}

function storageConf(folder: string): string {
  const driver = readFileSync('/proc/filesystems', 'utf8').includes('\toverlay\n') ? 'overlay' : 'vfs';
  const [graph, run] = [join(folder, 'graph'), join(folder, 'run')];
  return `[storage]\ndriver = "${driver}"\ngraphroot = "${graph}"\nrunroot = "${run}"\n`;
}

/** @param folder is made, and removed at the end with everything in it */
export function openPodman(folder: string): Podman {
  mkdirSync(folder, { recursive: true });
  const configuration = {
    CONTAINERS_CONF: containersConf(folder),
    CONTAINERS_STORAGE_CONF: storageConf(folder),
    CONTAINERS_REGISTRIES_CONF: 'unqualified-search-registries = []\n',
  };
  const env: NodeJS.ProcessEnv = { ...process.env, TMPDIR: folder };
  for (const [name, text] of Object.entries(configuration)) {
    const file = join(folder, `${name}.conf`);
    writeFileSync(file, text);
    env[name] = file;
  }
  const servers: ChildProcess[] = [];
  const attempt = (...args: string[]): CommandResult => {
    const { status, signal, error, stdout, stderr } = spawnSync('podman', args, { env, encoding: 'utf8' });
    const why = status === null ? `${String(signal)} ${error?.message ?? ''}` : '';
    return { code: status, stdout, stderr: `${stderr}${why}` };
  };
  const run = (...args: string[]): string => {
    const { code, stdout, stderr } = attempt(...args);
    if (code !== 0) throw new Error(`podman ${args.join(' ')}: ${String(code)}\n${stdout}${stderr}`);
    return stdout.trim();
  };
  return {
    env,
    run,
    tryRun: attempt,
    runPrinting: (...args) => {
      const { status } = spawnSync('podman', args, { env, stdio: ['ignore', 2, 2] });
      if (status !== 0) throw new Error(`podman ${args[0] ?? ''}: ${String(status)}, see above`);
    },
    startService: async () => {
      const socketPath = join(folder, 'podman.sock');
      const address = `unix://${socketPath}`;
      servers.push(spawn('podman', ['system', 'service', '--time', '0', address], { env, stdio: 'ignore' }));
      for (let tries = 0; tries < 100 && !(await isAnswering(socketPath)); tries++) await delay(100);
      return address;
    },
    [Symbol.dispose]: () => {
      for (const server of servers) server.kill();
      attempt('rm', '--force', '--all', '--time', '1');
      attempt('rmi', '--force', '--all');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function isAnswering(socketPath: string): Promise<boolean> {
  return await new Promise((resolve) => {
    get({ socketPath, path: '/_ping' }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on('error', () => {
      resolve(false);
    });
  });
}
