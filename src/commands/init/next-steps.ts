/** What a person reads when init has written its files: what is where, and which commands come next. */
import { toSingleLine } from '../../config/load/problems.ts';
import { SETTINGS } from '../../config/schema/schema.ts';
import type { Paint } from '../terminal.ts';
import type { InitPlan } from './interview.ts';
import { quoteForShell } from '../shell-quote.ts';

/**
 * Lines, each ended by a line feed.
 * @param program what calls this program again (called-as.ts)
 * @param env the environment, whose variables win over the file
 */
export function describeNextSteps(
  { answers, secret, output }: InitPlan,
  program: string,
  env: Readonly<Record<string, string | undefined>>,
  paint: Paint,
): string {
  const lines = [`Written: ${toSingleLine(output)}`];
  if (secret.kind === 'new-file')
    lines.push(`Written: ${toSingleLine(secret.path)} (the secret; only you can read it)`);
  const winning = [...SETTINGS].filter(
    ([key, { env: name }]) => [...answers.keys()].includes(key as never) && (env[name] ?? '') !== '',
  );
  for (const [, { env: name }] of winning) lines.push(paint('warning', `${name} is set here and wins over the file`));
  const isMissing = secret.kind === 'environment' && (env.SIDECAR_CLIENT_SECRET ?? '') === '';
  const named = `--config ${quoteForShell(toSingleLine(output))}`;
  lines.push('', 'Next:');
  if (isMissing) lines.push(command("export SIDECAR_CLIENT_SECRET='…'"));
  lines.push(command(`${program} check ${named}`), command(`${program} ${named}`), '');
  return lines.map((line) => `${line}\n`).join('');

  function command(line: string): string {
    return `  ${paint('name', line)}`;
  }
}
