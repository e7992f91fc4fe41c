/**
 * A container of a rendered manifest as a process: its variables and mounts, with folders of this machine for the volumes, free
 * ports, and servers on loopback for the partner.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { mountSecret } from './mounted-secret.ts';
import { environmentOf } from './pods.ts';
import type { Container, Pod, ServiceAccountTokenSource } from './pods.ts';
import type { KubernetesObject } from './manifests.ts';
import { newCredential } from './secrets.ts';
import { spawnSidecar } from './sidecar-process.ts';
import type { SidecarProcess, UserAndGroup } from './sidecar-process.ts';
import { startRecordingUpstream } from './recording-upstream.ts';
import type { RecordingUpstream } from './recording-upstream.ts';
import { startTokenServer } from './token-server.ts';
import type { TokenServer } from './token-server.ts';

/** What the examples call the partner. */
const EXAMPLE_UPSTREAM = 'https://api.partner.example/v1';
const EXAMPLE_AUTH = 'https://auth.partner.example';

export interface ContainerProcess extends AsyncDisposable {
  readonly process: SidecarProcess;
  readonly tokens: TokenServer;
  readonly upstream: RecordingUpstream;
  readonly proxyPort: number;
  readonly adminPort: number;
}

export interface ContainerOptions {
  /** Names the log. */
  readonly name: string;
  readonly objects: readonly KubernetesObject[];
  readonly pod: Pod;
  readonly container: Container;
  /** Contents of further Secrets, by name; that of the client is made up. */
  readonly secrets?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The user and group that it runs with, as a cluster may choose them. Default: those of the tests. */
  readonly user?: UserAndGroup;
  /** Issues the projected service-account tokens. */
  readonly issueToken?: (source: ServiceAccountTokenSource) => string;
}

/** Starts it; what the manifest says is kept but for ports, folders and the two URLs. */
export async function startContainer(options: ContainerOptions): Promise<ContainerProcess> {
  const { name, objects, pod, container } = options;
  await using cleanup = new AsyncDisposableStack();
  const tokens = cleanup.use(await startTokenServer());
  const upstream = cleanup.use(await startRecordingUpstream());
  const credential = newCredential();
  const client = { 'client-id': credential.id, 'client-secret': credential.secret };
  const folders = new Map<string, string>();
  const configMaps: { readonly mountPath: string; readonly name: string }[] = [];
  for (const { name: volume, mountPath } of container.volumeMounts ?? []) {
    const { secret, projected, configMap } = pod.volumes.find((candidate) => candidate.name === volume) ?? {};
    const sources = projected?.sources.flatMap(({ serviceAccountToken }) => serviceAccountToken ?? []) ?? [];
    if (sources.length > 0) {
      const { issueToken } = options;
      if (issueToken === undefined) throw new Error(`nothing issues the tokens of the volume ${volume}`);
      const files = Object.fromEntries(sources.map((source) => [source.path, issueToken(source)]));
      folders.set(mountPath, cleanup.use(await mountSecret(files)).path('.'));
    } else if (configMap !== undefined) {
      configMaps.push({ mountPath, name: configMap.name });
    } else if (secret === undefined) {
      const folder = await mkdtemp(join(tmpdir(), 'volume-'));
      // As an emptyDir is.
      await chmod(folder, 0o777);
      cleanup.defer(() => rm(folder, { recursive: true }));
      folders.set(mountPath, folder);
    } else {
      const files = { 'bearer-sidecar-client': client, ...options.secrets }[secret.secretName];
      if (files === undefined) throw new Error(`nothing is known of the Secret ${secret.secretName}`);
      const mounted = cleanup.use(await mountSecret(files));
      for (const file of Object.keys(files)) await chmod(mounted.path(file), secret.defaultMode ?? 0o644);
      await chmod(mounted.path('.'), 0o755);
      folders.set(mountPath, mounted.path('.'));
    }
  }
  const toLocal = (value: string): string => {
    const mount = [...folders].find(([path]) => value.startsWith(`${path}/`));
    return mount === undefined ? value : join(mount[1], value.slice(mount[0].length));
  };
  // A configuration file names the partner's two hosts and the files of the other volumes.
  const replaced: [string, string][] = [...folders, [EXAMPLE_UPSTREAM, upstream.url], [EXAMPLE_AUTH, tokens.url]];
  for (const { mountPath, name: map } of configMaps) {
    const { data = {} } = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === map) ?? {};
    const localize = (text: string) => replaced.reduce((result, [from, to]) => result.replaceAll(from, to), text);
    const files = Object.fromEntries(Object.entries(data).map(([file, text]) => [file, localize(text)]));
    const mounted = cleanup.use(await mountSecret(files));
    await chmod(mounted.path('.'), 0o755);
    folders.set(mountPath, mounted.path('.'));
  }
  const declared = environmentOf(container, objects);
  const hasFile = (declared.SIDECAR_CONFIG ?? '') !== '';
  const env = {
    ...Object.fromEntries(Object.entries(declared).map(([key, value]) => [key, toLocal(value)])),
    // The server has no metadata.
    ...(!hasFile && { SIDECAR_BASE_URL: upstream.url, SIDECAR_AUTH_URL: tokens.url, SIDECAR_AUTH_ISSUER: '' }),
    SIDECAR_LISTEN: (declared.SIDECAR_LISTEN ?? 'localhost:18080').replace(/\d+$/, '0'),
    SIDECAR_ADMIN_LISTEN: (declared.SIDECAR_ADMIN_LISTEN ?? 'localhost:19464').replace(/\d+$/, '0'),
  };
  const process = cleanup.use(
    spawnSidecar({
      name,
      env,
      ...(container.args && { args: container.args }),
      ...(options.user && { user: options.user }),
    }),
  );
  const portOf = async (server: string): Promise<number> => {
    const line = await process.waitForLine(new RegExp(`"server":"${server}"`));
    return Number(new URL((JSON.parse(line) as { url: string }).url).port);
  };
  const [proxyPort, adminPort] = await Promise.all([portOf('proxy'), portOf('admin')]);
  const all = cleanup.move();
  return { process, tokens, upstream, proxyPort, adminPort, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** An address of this machine by which it meets itself as a stranger: a connection to it comes from there, not from loopback. */
export function nonLoopbackAddress(): string {
  const address = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  if (address === undefined) throw new Error('this test needs an IPv4 address besides loopback');
  return address;
}
