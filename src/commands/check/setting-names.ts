/** Names settings in advice: with the variable, or with the route or credential of an entry. */
import { formatSettingName } from '../../config/load/problems.ts';
import type { SettingKey } from '../../config/schema/schema.ts';
import { DEFAULT_NAME } from '../../config/schema/schema-routes.ts';

export type NameSetting = (key: SettingKey) => string;

/** For one entry of `credentials` or `routes`; `default` is the top level. */
export function createSettingNamer(kind: 'credential' | 'route', name: string): NameSetting {
  if (name === DEFAULT_NAME) return formatSettingName;
  return (key) => `${key.replace(/^(?:auth|upstream)\./, '')} of the ${kind} ${name}`;
}

/** The target column of the report: `upstream`, `upstream quotes`. */
export function formatTarget(what: string, name: string): string {
  return name === DEFAULT_NAME ? what : `${what} ${name}`;
}
