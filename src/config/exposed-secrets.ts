/**
 * Warns of files with secrets in them that other users of the machine can read. Never a reason to refuse: how a secret is
 * mounted is often not for this process's user to decide.
 */
import { realpathSync, statSync } from 'node:fs';
import { nameOf } from './problems.ts';
import type { SettingKey, Settings } from './schema.ts';
import type { Given } from './sources.ts';

/** What decides who can read a file. */
export interface FileAccess {
  readonly mode: number;
  /** The owner. */
  readonly uid: number;
  /** With every symbolic link followed. */
  readonly realPath: string;
}

/** One warning for each file, unreadable ones apart: those are problems. */
export function warnOfExposedSecrets(settings: Settings, given: ReadonlyMap<SettingKey, Given>): string[] {
  const ownUid = process.getuid?.();
  return [...secretFiles(settings, given)].flatMap(([path, key]) => {
    const access = accessOf(path);
    if (access === undefined || !isExposed(access, ownUid)) return [];
    const mode = (access.mode & 0o777).toString(8).padStart(4, '0');
    return [`${nameOf(key)}: the file ${JSON.stringify(path)} can be read by other users (mode ${mode}); chmod 600 it`];
  });
}

/**
 * Whether more than its owner and those it was handed to can read a file.
 * @param ownUid of this process; undefined where files have no modes (Windows)
 */
export function isExposed({ mode, uid, realPath }: FileAccess, ownUid: number | undefined): boolean {
  if (ownUid === undefined) return false;
  if (uid === ownUid) return (mode & 0o077) !== 0;
  // Somebody else's file: the group is how it was handed over. A secret volume of Kubernetes belongs to root, and without
  // an fsGroup no other user could read it at all.
  const isKubernetesVolume = uid === 0 && /\/\.\.\d{4}_/.test(realPath);
  return (mode & 0o007) !== 0 && !isKubernetesVolume;
}

/** Path to the setting that names it, or that stands in it. */
function secretFiles(settings: Settings, given: ReadonlyMap<SettingKey, Given>): Map<string, SettingKey> {
  const files = new Map<string, SettingKey>();
  const { clientSecretFile } = settings.auth;
  const { valueFile } = settings.listen.requiredHeader;
  if (clientSecretFile !== null) files.set(clientSecretFile, 'auth.clientSecretFile');
  if (valueFile !== null) files.set(valueFile, 'listen.requiredHeader.valueFile');
  for (const key of ['auth.clientSecret', 'listen.requiredHeader.value'] as const) {
    const origin = given.get(key)?.origin ?? '';
    if (origin.startsWith('file ')) files.set(origin.slice('file '.length), key);
  }
  return files;
}

function accessOf(path: string): FileAccess | undefined {
  try {
    const { mode, uid } = statSync(path);
    return { mode, uid, realPath: realpathSync(path) };
  } catch {
    // Gone since it was read: whoever reads it next says so.
    return undefined;
  }
}
