/** The text after init: the written files and the next commands. */
import { existsSync } from 'node:fs';
import { toSingleLine } from '../../config/load/problems.ts';
import { SETTINGS } from '../../config/schema/schema.ts';
import type { Paint } from '../terminal.ts';
import type { InitPlan } from './interview.ts';
import { quoteForShell } from '../program-command.ts';

/** Maps of fields that a partner chose. */
export const PARTNER_FIELDS = [
  'auth.extraParameters',
  'auth.extraHeaders',
  'upstream.headers',
  'upstream.query',
] as const;

/** @param secretFiles those that were written @param program the command that runs this program again @param env overrides the file */
export function describeNextSteps(
  { settings, secret, output }: InitPlan,
  secretFiles: readonly string[],
  program: string,
  env: Readonly<Record<string, string | undefined>>,
  paint: Paint,
): string {
  const command = (line: string): string => `  ${paint('name', line)}`;
  const lines = [`Written: ${toSingleLine(output)}`];
  for (const path of secretFiles) lines.push(`Written: ${toSingleLine(path)} (the secret; only you can read it)`);
  const tokenFile = secret.kind === 'file' ? settings.get('auth.tokenFile') : undefined;
  if (tokenFile !== undefined && !existsSync(tokenFile))
    lines.push(paint('warning', `Write the token into ${toSingleLine(tokenFile)}, which does not exist yet`));
  const overriding = [...SETTINGS].filter(
    ([key, { env: name }]) => [...settings.keys()].includes(key as never) && (env[name] ?? '') !== '',
  );
  for (const [, { env: name }] of overriding)
    lines.push(paint('warning', `${name} is set here and overrides the file`));
  const isMissing = secret.kind === 'environment' && (env.SIDECAR_CLIENT_SECRET ?? '') === '';
  const named = `--config ${quoteForShell(toSingleLine(output))}`;
  lines.push('', 'Next:');
  if (isMissing) lines.push(command("export SIDECAR_CLIENT_SECRET='…'"));
  lines.push(command(`${program} check ${named}`), command(`${program} ${named}`), '');
  return lines.map((line) => `${line}\n`).join('');
}
