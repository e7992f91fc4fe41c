/** How a check names the setting that a person has to look at: with its variable, or with the route or credential it stands in. */
import { formatSettingName } from '../../config/load/problems.ts';
import type { SettingKey } from '../../config/schema/schema.ts';
import { DEFAULT_NAME } from '../../config/schema/schema-routes.ts';

/** Names a setting. */
export type NameSetting = (key: SettingKey) => string;

/** Of one entry of `credentials` or `routes`; `default` is the top level. */
export function createSettingNamer(kind: 'credential' | 'route', name: string): NameSetting {
  if (name === DEFAULT_NAME) return formatSettingName;
  return (key) => `${key.replace(/^(?:auth|upstream)\./, '')} of the ${kind} ${name}`;
}

/** What is looked at, as a column of the report: `upstream`, `upstream quotes`. */
export function formatTarget(what: string, name: string): string {
  return name === DEFAULT_NAME ? what : `${what} ${name}`;
}
