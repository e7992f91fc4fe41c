/**
 * The package that `npm pack` makes, installed in an empty folder and used as a person uses it. The dependencies come from this
 * project's own folder, which needs no network; `npm run release:rehearse` lets npm install them from the registry.
 */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call } from '../support/calls.ts';
import { OLDEST_NODE, installNode } from '../support/node-versions.ts';
import { newCredential } from '../support/secrets.ts';
import { ENVIRONMENT, installFromHere, packPackage, scriptsOf } from './package-install.ts';
import type { Tarball } from './package-install.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const SETUP_MS = 180_000;
const AT_INSTALL = ['preinstall', 'install', 'postinstall'];
const FREE_PORTS = { SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' };
const run = promisify(execFile);

interface Manifest {
  readonly homepage: string;
  readonly repository: { readonly url: string };
  readonly bugs: { readonly url: string };
  readonly scripts: Readonly<Record<string, string>>;
}

let folder = '';
let project = '';
let tarball: Tarball;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'packed-'));
  project = join(folder, 'project');
  tarball = await packPackage(folder);
  await installFromHere(tarball.file, project);
  const { contents, bytes, unpackedBytes } = tarball;
  console.log(`package: ${contents.length} files, ${bytes} bytes packed, ${unpackedBytes} bytes unpacked`);
}, SETUP_MS);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the package', () => {
  it('contains only the program, its configuration and its licence', () => {
    const { contents } = tarball;
    for (const file of [
      'LICENSE',
      'README.md',
      'package.json',
      'dist/main.js',
      'config/default.yaml',
      'config/reference.md',
      'config/schema.json',
      'config/status-schema.json',
    ])
      expect(contents).toContain(file);
    const others = contents.filter(
      (path) =>
        !/^(LICENSE|README\.md|package\.json|dist\/licences\.txt|dist\/.+\.(js|css)|config\/(scenarios\/)?[a-z-]+\.(yaml|md|json))$/.test(
          path,
        ),
    );
    expect(others).toEqual([]);
  });

  it('has pages with links to its own files, to headings and to addresses only, and names no file that it has not as a link', async () => {
    await run('tar', ['-xzf', tarball.file, '-C', folder]);
    const unpacked = join(folder, 'package');
    const pages = tarball.contents.filter((path) => path.endsWith('.md'));
    expect(pages).toContain('README.md');
    for (const page of pages) {
      const text = readFileSync(join(unpacked, page), 'utf8');
      const targets = [...text.matchAll(/\]\(([^)\s]+)|(?:src|href|srcset)="([^"]+)"/g)].map(
        ([, md, html]) => md ?? html ?? '',
      );
      const dead = targets.filter((target) => {
        const [path = ''] = target.split('#');
        return !/^[a-z]+:/.test(target) && path !== '' && !tarball.contents.includes(join(dirname(page), path));
      });
      expect(dead, page).toEqual([]);
    }
    const readme = readFileSync(join(unpacked, 'README.md'), 'utf8');
    expect(readme).toContain('[config/reference.md](config/reference.md)');
    expect(readme).toContain('\nbearer-sidecar check');
    expect(readme).not.toContain('dist/main.js');
    expect(readme).not.toContain('<picture>');
    // The repository's own is as it was.
    expect(readFileSync(join(folder, 'copy', 'README.md'), 'utf8')).toBe(readFileSync(join(ROOT, 'README.md'), 'utf8'));
  });

  it('says where it comes from, and has no script that npm would run or warn about when it is installed', async () => {
    await run('tar', ['-xzf', tarball.file, '-C', folder]);
    const manifest = JSON.parse(readFileSync(join(folder, 'package', 'package.json'), 'utf8')) as Manifest;
    for (const address of [manifest.homepage, manifest.repository.url.replace(/^git\+/, ''), manifest.bugs.url])
      expect(new URL(address).protocol).toBe('https:');
    const atInstall = [...AT_INSTALL, 'prepublish', 'preprepare', 'prepare', 'postprepare'];
    expect(Object.keys(manifest.scripts).filter((name) => atInstall.includes(name))).toEqual([]);
  });

  it('has few files in ASCII, with the licence of each package in them', async () => {
    await run('tar', ['-xzf', tarball.file, '-C', folder]);
    const dist = join(folder, 'package', 'dist');
    const programs = readdirSync(dist).filter((name) => name.endsWith('.js'));
    expect(programs.length).toBeLessThan(50);
    for (const name of programs) expect(readFileSync(join(dist, name), 'utf8'), name).toMatch(/^[\0-\x7f]*$/);
    const licences = readFileSync(join(dist, 'licences.txt'), 'utf8');
    for (const name of ['undici', 'pino', 'prom-client', 'convict', 'structured-headers', 'yaml'])
      expect(licences).toMatch(new RegExp(`^${name} \\d.*\\(\\S+\\)\\n\\n.*(?:[Ll]icen[sc]e|Copyright)`, 'm'));
  });

  it('passes publint', () => {
    const { stdout } = spawnSync('publint', ['--strict', tarball.file], { env: ENVIRONMENT, encoding: 'utf8' });
    expect(stdout).toContain('All good!');
  });

  it('has no types: it is a command, and `exports` allows its manifest only', () => {
    const { stdout } = spawnSync('attw', [tarball.file], { env: ENVIRONMENT, encoding: 'utf8' });
    expect(stdout).toContain('does not contain types');
  });
});

describe('the installed package', () => {
  it('has no install scripts, and neither have its dependencies', () => {
    const scripts = scriptsOf(project);
    expect([...scripts.keys()]).toEqual(expect.arrayContaining(['bearer-sidecar', 'undici', 'pino']));
    const offenders = [...scripts].filter(([, names]) => AT_INSTALL.some((name) => names.includes(name)));
    expect(offenders).toEqual([]);
  });

  it('runs `node_modules/.bin/bearer-sidecar sandbox`', () => trySandbox(installedCommand(), ['sandbox']));

  it('runs the other commands', async () => {
    const version = await bearerSidecar('--version');
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const { secret } = newCredential();
    const settings = {
      SIDECAR_BASE_URL: 'https://api.partner.example',
      SIDECAR_AUTH_URL: 'http://127.0.0.1:9',
      SIDECAR_CLIENT_ID: 'me',
      SIDECAR_CLIENT_SECRET: secret,
      SIDECAR_AUDIENCE: 'https://api.partner.example/',
    };
    const config = await bearerSidecar('config', settings);
    expect(config.stdout).toContain('https://api.partner.example');
    expect(config.stdout).not.toContain(secret);
    await expect(bearerSidecar('check', settings)).rejects.toMatchObject({ code: 1 });
    await expect(bearerSidecar('run')).rejects.toMatchObject({ code: 2 });
  });
});

describe('on the oldest supported Node.js', () => {
  const programs = (): string => join(project, 'node_modules', 'bearer-sidecar', 'dist');
  let oldest = '';

  beforeAll(async () => {
    oldest = await installNode(OLDEST_NODE);
    expect((await run(oldest, ['--version'])).stdout).toBe('v22.21.0\n');
  }, SETUP_MS);

  it('parses every file of the program', async () => {
    const names = readdirSync(programs()).filter((name) => name.endsWith('.js'));
    expect(names.length).toBeGreaterThan(20);
    for (const name of names) await run(oldest, ['--check', join(programs(), name)]);
  });

  it('runs the sandbox', () => trySandbox(oldest, [join(programs(), 'main.js'), 'sandbox']));

  it('`init` writes a configuration', async () => {
    const responses = ['--base-url', 'https://api.partner.example', '--auth-url', 'https://login.partner.example'];
    const client = ['--client-id', 'me', '--audience', 'https://api.partner.example'];
    const cwd = mkdtempSync(join(folder, 'init-'));
    await run(oldest, [join(programs(), 'main.js'), 'init', '--yes', ...responses, ...client], { cwd });
    expect(readFileSync(join(cwd, 'sidecar.yaml'), 'utf8')).toContain('https://login.partner.example');
  });
});

/** Starts it, sends the request that it prints, and fetches the files of its status page. */
async function trySandbox(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, {
    cwd: project,
    env: { ...ENVIRONMENT, ...FREE_PORTS },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(child, 'close');
  try {
    let stdout = '';
    child.stdout.setEncoding('utf8');
    for await (const text of child.stdout) {
      stdout += String(text);
      if (/^try .*\n/m.test(stdout)) break;
    }
    const line = /^try (.*)$/m.exec(stdout)?.[1] ?? '';
    const response = await run('sh', ['-c', line]);
    expect(response.stdout).toMatch(/^HTTP\/1\.1 201 /);
    const admin = /^admin (.*)$/m.exec(stdout)?.[1] ?? '';
    const { text: page } = await call(`${admin}/`);
    const files = [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
    expect(files).not.toEqual([]);
    for (const path of files) expect((await call(`${admin}${path}`)).status, path).toBe(200);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

function bearerSidecar(command: string, settings: Readonly<Record<string, string>> = {}) {
  return run(installedCommand(), [command], { cwd: project, env: { PATH: ENVIRONMENT.PATH, ...settings } });
}

function installedCommand(): string {
  return join(project, 'node_modules', '.bin', 'bearer-sidecar');
}
