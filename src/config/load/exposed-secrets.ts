/**
 * Warns about secret files that other users of the machine can read. It is never an error: the user of this process often cannot
 * decide how a secret is mounted.
 */
import { realpathSync, statSync } from 'node:fs';
import type { ConfigEntries, ConfigEntry } from './entries.ts';
import { formatSettingName } from './problems.ts';
import type { ResolvedRoutes } from './routes.ts';
import type { SettingKey, Settings } from '../schema/schema.ts';
import type { RawValue } from './sources.ts';

/** The facts that decide who can read a file. */
export interface FileAccess {
  readonly mode: number;
  /** The owner. */
  readonly uid: number;
  /** After following every symbolic link. */
  readonly realPath: string;
}

/** One warning per file. Unreadable files are problems instead. */
export function findExposedSecretWarnings(settings: Settings, given: ReadonlyMap<SettingKey, RawValue>): string[] {
  return [...findSecretFiles(settings, given)].flatMap(([path, key]) =>
    exposedFileWarnings(path, formatSettingName(key)),
  );
}

function exposedFileWarnings(path: string, name: string): string[] {
  const access = readFileAccess(path);
  const ownUid = process.getuid?.();
  if (access === undefined || !isExposed(access, ownUid)) return [];
  const mode = (access.mode & 0o777).toString(8).padStart(4, '0');
  return [
    `${name}: the file ${JSON.stringify(path)} can be read by other users (mode ${mode}); ${adviseOnFileMode(access, ownUid)}`,
  ];
}

/** The same for files that entries of `routes` and `credentials` name, each file once. */
export function findEntryWarnings(
  entries: ConfigEntries,
  { routes, credentials }: Pick<ResolvedRoutes, 'routes' | 'credentials'>,
): string[] {
  const warnings = [...findWarningsIn(entries.credentials, credentials), ...findWarningsIn(entries.routes, routes)];
  return [...new Set(warnings)];
}

function findWarningsIn(
  entries: readonly ConfigEntry[],
  resolved: readonly { readonly name: string; readonly settings: Settings }[],
): string[] {
  const byName = new Map(resolved.map(({ name, settings }) => [name, settings]));
  return entries.flatMap((entry) => {
    const settings = byName.get(entry.name ?? '');
    if (settings === undefined) return [];
    const given = new Map([...entry.settings].map(([key, value]) => [key, { value, origin: entry.origin }]));
    return [...findSecretFiles(settings, given)].flatMap(([path, key]) => {
      const name = entry.settings.has(key) ? entry.nameOf(key) : undefined;
      return name === undefined ? [] : exposedFileWarnings(path, name);
    });
  });
}

/**
 * Whether users other than the owner, and the group it was given to, can read a file.
 * @param ownUid of this process; undefined where files have no modes (Windows)
 */
export function isExposed({ mode, uid, realPath }: FileAccess, ownUid: number | undefined): boolean {
  if (ownUid === undefined) return false;
  if (uid === ownUid) return (mode & 0o077) !== 0;
  // A file of another user is shared through its group. A Kubernetes secret volume belongs to root; without an fsGroup it must be
  // readable by all.
  const isKubernetesVolume = uid === 0 && /\/\.\.\d{4}_/.test(realPath);
  return (mode & 0o007) !== 0 && !isKubernetesVolume;
}

/** How to restrict the file so that this process can still read it. */
export function adviseOnFileMode({ uid }: FileAccess, ownUid: number | undefined): string {
  if (ownUid === undefined || uid === ownUid) return 'chmod 600 it';
  return `it belongs to user ${String(uid)}: chown ${String(ownUid)} it and chmod 400 it, or give it to a group of user ${String(ownUid)} and chmod 640 it`;
}

/** Path of each secret file to the setting that names it or is stored in it. */
function findSecretFiles(settings: Settings, given: ReadonlyMap<SettingKey, RawValue>): Map<string, SettingKey> {
  const files = new Map<string, SettingKey>();
  const { clientSecretFile, privateKeyFile, assertionFile, tlsKeyFile } = settings.auth;
  const { valueFile } = settings.listen.requiredHeader;
  if (clientSecretFile !== null) files.set(clientSecretFile, 'auth.clientSecretFile');
  if (privateKeyFile !== null) files.set(privateKeyFile, 'auth.privateKeyFile');
  if (assertionFile !== null) files.set(assertionFile, 'auth.assertionFile');
  if (tlsKeyFile !== null) files.set(tlsKeyFile, 'auth.tlsKeyFile');
  if (settings.upstream.tlsKeyFile !== null) files.set(settings.upstream.tlsKeyFile, 'upstream.tlsKeyFile');
  if (settings.fleet.redisUrlFile !== null) files.set(settings.fleet.redisUrlFile, 'fleet.redisUrlFile');
  if (valueFile !== null) files.set(valueFile, 'listen.requiredHeader.valueFile');
  const urls = (['fleet.redisUrl', 'egress.proxy', 'egress.httpProxy'] as const).filter((key) => {
    const value = given.get(key)?.value;
    // A URL without user information holds no secret.
    return typeof value === 'string' && value.includes('@');
  });
  const maps = (['auth.extraParameters', 'auth.extraHeaders'] as const).filter((key) => given.has(key));
  for (const key of ['auth.clientSecret', 'listen.requiredHeader.value', ...urls, ...maps] as const) {
    const origin = given.get(key)?.origin ?? '';
    if (origin.startsWith('file ')) files.set(origin.slice('file '.length), key);
  }
  return files;
}

function readFileAccess(path: string): FileAccess | undefined {
  try {
    const { mode, uid } = statSync(path);
    return { mode, uid, realPath: realpathSync(path) };
  } catch {
    // Removed since it was read: the next reader reports that.
    return undefined;
  }
}
