/**
 * Registers the secrets and tokens that a test uses, so that the run can search everything that was printed for them
 * afterwards (tools/test-run/leaks.ts). What is registered must never be printed by a test itself.
 */
import { appendFileSync, mkdirSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { RegisteredSecret } from '../../tools/test-run/leaks.ts';

/** Everything that the tests' processes print is kept here, the register as well. */
export const OUTPUT = join(import.meta.dirname, '..', '.output');

const REGISTER = join(OUTPUT, 'secrets');
/** Anything shorter would be found by chance. */
export const SHORTEST_SECRET = 8;

const registered = new Set<string>();

/**
 * From now on `value` may appear in no output; `what` names it in the report. Registering again does nothing.
 * @throws RangeError when it is too short to be searched for
 */
export function registerSecret(what: string, value: string): void {
  if (registered.has(value)) return;
  if (value.length < SHORTEST_SECRET) throw new RangeError('a secret this short would be found by chance');
  registered.add(value);
  mkdirSync(REGISTER, { recursive: true });
  const line: RegisteredSecret = { what, value };
  appendFileSync(join(REGISTER, `${String(process.pid)}.jsonl`), `${JSON.stringify(line)}\n`);
}

export interface Credential {
  readonly id: string;
  readonly secret: string;
}

/** A client id and a secret that no other test has; the secret is registered, as is its Basic form. */
export function newCredential(): Credential {
  const credential = {
    id: `client-${randomBytes(4).toString('hex')}`,
    secret: `s3cr%t+/ü-${randomBytes(12).toString('hex')}`,
  };
  registerSecret('a client secret', credential.secret);
  registerSecret('a client id and secret, joined for Basic', `${credential.id}:${credential.secret}`);
  return credential;
}
