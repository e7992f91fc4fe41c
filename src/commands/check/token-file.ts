/** Checks a token that another program writes into a file: whether it can be used, and when it ends, if it says so. */
import { readTokenFile } from '../../token/source/file-token-source.ts';
import { readJwtExpiry } from '../../token/client/assertion-claims.ts';
import type { TokensInUse } from '../../platform/tokens-in-use.ts';
import { createSettingNamer, formatTarget } from './setting-names.ts';
import { StepRunner } from './step-runner.ts';
import type { CheckContext, CheckFinding } from './step-runner.ts';

export async function checkTokenFile(
  path: string,
  credential: string,
  check: CheckContext & { readonly tokensInUse: TokensInUse },
) {
  const runner = new StepRunner(formatTarget('token file', credential), check);
  const token = await runner.run('token', async () => {
    const reading = await readTokenFile(path);
    const advice = `write the token into that file, or correct ${createSettingNamer('credential', credential)('auth.tokenFile')}`;
    if (reading.kind === 'unreadable') return { outcome: 'fail', detail: reading.detail, advice };
    check.tokensInUse.add(credential, reading.value);
    return { outcome: 'ok', detail: `${path}, ${reading.value.length} characters`, value: reading.value };
  });
  if (token !== undefined) runner.record('lifetime', evaluateExpiry(readJwtExpiry(token), check.clock.wallNow()));
  return { steps: runner.steps, token };
}

function evaluateExpiry(endWallAt: number | undefined, wallNow: number): CheckFinding {
  if (endWallAt === undefined) return { outcome: 'ok', detail: 'the token does not say when it ends' };
  const end = new Date(endWallAt).toISOString().replace(/\.\d+Z$/, 'Z');
  if (endWallAt > wallNow) return { outcome: 'ok', detail: `a JWT that is valid until ${end}` };
  const advice = 'ask who runs the program that renews the file why it has stopped';
  return { outcome: 'warn', detail: `a JWT that expired at ${end}`, advice };
}
