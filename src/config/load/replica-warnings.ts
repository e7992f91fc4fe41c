/** Warns of configured limits that each process keeps to for itself, where it may have replicas: in Kubernetes. */
import { isDeepStrictEqual } from 'node:util';
import { settingOf, valueOfSetting, type SettingKey } from '../schema/schema.ts';
import { formatSettingName } from './problems.ts';
import type { ResolvedEntry } from './resolve.ts';

const LIMITS: readonly SettingKey[] = ['throttle.rate', 'throttle.maxRate', 'throttle.limits'];

/** @returns one warning at most */
export function findReplicaWarnings(
  routes: readonly ResolvedEntry[],
  env: Readonly<Record<string, string | undefined>>,
): string[] {
  if (!env.KUBERNETES_SERVICE_HOST) return [];
  const alone = routes.filter(
    ({ settings: { throttle, fleet } }) => throttle.share === 1 && (fleet.redisUrl ?? fleet.redisUrlFile) === null,
  );
  const isSet = (key: SettingKey): boolean =>
    alone.some(({ settings }) => !isDeepStrictEqual(valueOfSetting(settings, key), settingOf(key).default));
  const names = LIMITS.filter(isSet);
  if (names.length === 0) return [];
  const remedies = `${formatSettingName('throttle.share')} to their number, or ${formatSettingName('fleet.redisUrlFile')}`;
  return [
    `${names.join(', ')}: for this replica alone; several together send a multiple of it, unless you set ${remedies}`,
  ];
}
