/**
 * What the image, its bill of materials and the compose file promise, as far as it can be read from them. That the image builds
 * and runs is shown by `npm run image:test`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { SETTINGS } from '../../src/config/schema/schema.ts';
import { readBaseImage } from '../../tools/image/base-image.ts';
import { findLibraries, findPackages } from '../../tools/image/debian.ts';
import { openToAllUsers } from '../../tools/image/file-modes.ts';
import { createLauncher } from '../../tools/image/launcher.ts';
import { removeUnusedFiles } from '../../tools/image/prune.ts';
import { createBom } from '../../tools/image/sbom.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');
const readJson = (...path: string[]): unknown => JSON.parse(read(...path));

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const manifest = readJson('package.json') as Manifest;

describe('the Dockerfile', () => {
  const stages = read('Dockerfile')
    .replaceAll(/\\\n\s*/g, '')
    .split(/^(?=FROM )/m)
    .slice(1)
    .map((stage) => stage.split('\n').filter((line) => line !== '' && !line.startsWith('#')));
  const last = stages.at(-1) ?? [];
  const value = (instruction: string): string[] =>
    last.filter((line) => line.startsWith(`${instruction} `)).map((line) => line.slice(instruction.length + 1));

  it('uses the Node.js version of the tests as its only base', () => {
    expect(readBaseImage(join(ROOT, 'Dockerfile')).nodeVersion).toBe(process.versions.node);
    const bases = stages.map(([from = '']) => from.split(' ')[1]);
    expect(bases).toEqual(['${NODE_IMAGE}', 'packages', '${NODE_IMAGE}', 'scratch']);
  });

  it('builds an image without a shell, with a numeric user', () => {
    expect(value('RUN')).toEqual([]);
    expect(value('USER')).toEqual(['1000:1000']);
    for (const command of [
      ...value('ENTRYPOINT'),
      ...value('HEALTHCHECK').map((check) => check.replace(/^.*CMD /, '')),
    ])
      expect((JSON.parse(command) as string[])[0]).toBe('/usr/local/bin/node');
    expect(value('ENTRYPOINT')).toHaveLength(1);
    expect(value('HEALTHCHECK')).toHaveLength(1);
  });

  it('copies only the assembled files, one layer each', () => {
    expect(value('COPY')).toEqual(
      ['system', 'packages', 'application'].map((layer) => `--from=image /image/${layer}/ /`),
    );
  });

  it('installs from the lock file, and runs no script of a package', () => {
    const installs = stages.flat().filter((line) => /npm (ci|install|i) /.test(line));
    expect(installs).toHaveLength(2);
    for (const install of installs) expect(install).toMatch(/npm ci .*--ignore-scripts/);
  });

  it('is labelled with the version of the package', () => {
    expect(value('ARG')).toContain(`VERSION=${manifest.version}`);
    expect(value('LABEL').join(' ')).toMatch(/image\.version="\$\{VERSION\}".*image\.base\.name="\$\{NODE_IMAGE\}"/);
  });

  it('copies no file that .dockerignore excludes', () => {
    const open = read('.dockerignore').split('\n').slice(1);
    const sources = stages
      .slice(0, -1)
      .flat()
      .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
      .flatMap((line) => line.split(' ').slice(1, -1));
    expect(sources.length).toBeGreaterThan(5);
    for (const source of sources) {
      expect(existsSync(join(ROOT, source)), source).toBe(true);
      const isOpen = open.some((rule) => rule === `!${source}` || source.startsWith(rule.slice(1) || '!'));
      expect(isOpen, source).toBe(true);
    }
  });
});

it('the command of the image runs by its name with nothing else on PATH, passes arguments on and reports exit codes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'launcher-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const launcher = createLauncher(process.execPath, join(ROOT, 'src', 'main.ts'));
  writeFileSync(join(folder, 'bearer-sidecar'), launcher, { mode: 0o755 });
  const run = (...args: string[]) =>
    spawnSync('bearer-sidecar', args, { cwd: '/', env: { PATH: folder }, encoding: 'utf8' });
  expect(run('--version')).toMatchObject({ status: 0, stdout: `${manifest.version}\n`, stderr: '' });
  expect(run('health', 'nonsense')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('"nonsense"') as string,
  });
  const restarted = spawnSync('bearer-sidecar', ['health', 'nonsense'], {
    env: { PATH: folder, NODE_DEBUG: 'net' },
    encoding: 'utf8',
  });
  expect(restarted).toMatchObject({ status: 2, stderr: expect.stringContaining('"nonsense"') as string });
});

describe('the libraries that go into the image', () => {
  it('are those that Node.js is linked to, with their Debian packages', () => {
    const libraries = findLibraries(process.execPath);
    const names = libraries.map((file) => file.replace(/^.*\//, '').replace(/\.so.*$/, ''));
    expect(names).toEqual(expect.arrayContaining(['libc', 'libstdc++', 'libatomic', expect.stringMatching(/^ld-/)]));
    for (const file of libraries) expect(existsSync(file), file).toBe(true);
    const packages = findPackages(libraries).map(({ name }) => name);
    expect(packages).toEqual(expect.arrayContaining(['libatomic1', 'libc6', 'libstdc++6']));
  });
});

it('every user may read what the image has, also of a clone that allowed it to its owner alone', () => {
  const folder = mkdtempSync(join(tmpdir(), 'modes-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const modes = { 'package.json': 0o600, 'dist/main.js': 0o640, 'bin/node': 0o700, 'tmp/sticky': 0o644 };
  for (const [path, mode] of Object.entries(modes)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, path), '', { mode });
  }
  chmodSync(join(folder, 'tmp'), 0o1777);
  openToAllUsers(folder);
  const modeOf = (path: string) => (statSync(join(folder, path)).mode & 0o7777).toString(8);
  expect(Object.keys(modes).map(modeOf)).toEqual(['644', '644', '755', '644']);
  expect(['dist', 'bin', 'tmp'].map(modeOf)).toEqual(['755', '755', '1777']);
});

describe('the bill of materials', () => {
  const bom = createBom(ROOT);

  it('is valid CycloneDX 1.5', () => {
    const folder = join(
      dirname(fileURLToPath(import.meta.resolve('@cyclonedx/cyclonedx-library/package.json'))),
      'res/schema',
    );
    const schema = (name: string): object => JSON.parse(readFileSync(join(folder, name), 'utf8')) as object;
    const ajv = new Ajv({ strict: false, validateFormats: false });
    for (const name of ['spdx.SNAPSHOT.schema.json', 'jsf-0.82.SNAPSHOT.schema.json'])
      ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}`);
    const validate = ajv.compile(schema('bom-1.5.SNAPSHOT.schema.json'));
    expect(validate(bom), JSON.stringify(validate.errors)).toBe(true);
    // The check can fail.
    expect(validate({ ...bom, components: [{ name: 'without a type' }] })).toBe(false);
  });

  it('lists exactly what the runtime dependencies need', () => {
    const expected = closureOf(ROOT);
    expect(expected.size).toBeGreaterThan(Object.keys(manifest.dependencies ?? {}).length);
    expect(bom.components.map((part) => part['bom-ref']).toSorted()).toEqual([...expected].toSorted());
  });

  it('describes this package, and is reproducible', () => {
    expect(bom.metadata.component).toMatchObject({ name: manifest.name, version: manifest.version });
    expect(createBom(ROOT)).toEqual(bom);
    expect(createBom(ROOT, [], 86_400).metadata.timestamp).toBe('1970-01-02T00:00:00.000Z');
  });

  it('is written to the file that npm run sbom names', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sbom-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'new', 'sbom.cdx.json');
    execFileSync(process.execPath, [join(ROOT, 'tools/image/write-sbom.ts'), file]);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(bom);
  });
});

describe('deploy/compose.yaml', () => {
  const file = join(ROOT, 'deploy', 'compose.yaml');

  const configOf = (path: string, ...args: string[]): string => {
    const { stdout, stderr } = spawnSync('docker-compose', [...args, '--file', path, 'config'], { encoding: 'utf8' });
    return stdout === '' ? `refused: ${stderr}` : stdout;
  };

  it('is valid for docker-compose', () => {
    const { services } = parse(configOf(file)) as { services: Record<string, unknown> };
    expect(Object.keys(services).toSorted()).toEqual(['app', 'grafana', 'prometheus', 'sidecar']);
    // The check can fail.
    expect(configOf(join(ROOT, 'deploy', 'prometheus', 'prometheus.yml'))).toMatch(/^refused: /);
  });

  const environmentOf = (...args: string[]): Readonly<Record<string, string>> =>
    (parse(configOf(file, ...args)) as { services: { sidecar: { environment: Record<string, string> } } }).services
      .sidecar.environment;
  const example = read('deploy', 'sidecar.env.example');

  it('hands every variable of the file on to the sidecar, which reads the secret where compose puts it', () => {
    const folder = mkdtempSync(join(tmpdir(), 'compose-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const settings = join(folder, 'my.env');
    const filled = example.replaceAll(/^#(?=SIDECAR_)/gm, '').replace('ENV_FILE=.env', `ENV_FILE=${settings}`);
    writeFileSync(settings, filled);
    const environment = environmentOf('--env-file', settings);
    expect(environment).toMatchObject({
      SIDECAR_BASE_URL: 'https://api.partner.example/v1',
      SIDECAR_RATE: '5',
      SIDECAR_LOG_LEVEL: 'debug',
      SIDECAR_CLIENT_SECRET_FILE: '/run/secrets/client-secret',
      SIDECAR_ADMIN_LISTEN: '0.0.0.0:19464',
    });
    expect(filled.match(/^SIDECAR_\w+/gm)?.filter((name) => !(name in environment))).toEqual([]);
    expect(parse(configOf(file, '--env-file', settings))).toMatchObject({
      secrets: { 'client-secret': { file: '/absolute/path/to/client-secret' } },
    });
  });

  it('sets nothing from the example as it is, which names settings that exist and no secret', () => {
    const { ENV_FILE: own, ...environment } = environmentOf();
    expect(own).toBe('.env');
    const { services } = parse(read('deploy', 'compose.yaml')) as {
      services: { sidecar: { environment: Record<string, string> } };
    };
    expect(Object.keys(environment).toSorted()).toEqual(Object.keys(services.sidecar.environment).toSorted());
    // A client id is masked like a secret, and is none.
    const known = [...SETTINGS.values()].filter(({ env, sensitive }) => !sensitive || env === 'SIDECAR_CLIENT_ID');
    expect(known.map(({ env }) => env)).toEqual(expect.arrayContaining(example.match(/(?<=^#)SIDECAR_\w+/gm) ?? []));
  });

  it('mounts existing files, opens ports on loopback only, and runs this version', () => {
    const { services } = parse(readFileSync(file, 'utf8')) as {
      services: Record<string, { image: string; ports?: string[]; volumes?: string[] }>;
    };
    for (const { ports = [], volumes = [] } of Object.values(services)) {
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
      for (const volume of volumes)
        expect(existsSync(join(ROOT, 'deploy', volume.split(':')[0] ?? '')), volume).toBe(true);
    }
    expect(services.sidecar?.image).toBe(`${manifest.name}:${manifest.version}`);
    expect(services.app).toMatchObject({ image: services.sidecar?.image, network_mode: 'service:sidecar' });
  });
});

/** `name@version` of all that is reached from the package's dependencies, as Node.js would find it; found without npm. */
function closureOf(root: string): Set<string> {
  const found = new Map<string, string>();
  const visit = (folder: string): void => {
    const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
    for (const name of Object.keys(dependencies)) {
      const next = locate(name, folder);
      if (found.has(next)) continue;
      const { version } = JSON.parse(readFileSync(join(next, 'package.json'), 'utf8')) as Manifest;
      found.set(next, `${name}@${version}`);
      visit(next);
    }
  };
  visit(root);
  return new Set(found.values());
}

function locate(name: string, from: string): string {
  const here = join(from, 'node_modules', name);
  if (existsSync(join(here, 'package.json'))) return here;
  if (dirname(from) === from) throw new Error(`${name} is not installed`);
  return locate(name, dirname(from));
}

it('packages lose files that are never loaded, and keep their licences under any file name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'prune-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const kept = [
    'a/LICENSE',
    'a/lib/doc/index.js',
    'a/package.json',
    '@s/b/LICENSE.md',
    '@s/b/Notice.markdown',
    'c/COPYING',
  ];
  const lost = [
    'a/README.md',
    'a/lib/index.d.ts',
    'a/lib/index.js.map',
    '@s/b/test/all.js',
    '.bin/a',
    'c/docs/LICENSE.html',
  ];
  for (const path of [...kept, ...lost]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), path);
  }
  removeUnusedFiles(folder);
  for (const path of kept) expect(existsSync(join(folder, path)), path).toBe(true);
  for (const path of lost) expect(existsSync(join(folder, path)), path).toBe(false);
});
