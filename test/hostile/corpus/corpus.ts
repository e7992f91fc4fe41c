/** All cases in one list. */
import type { HostileCase } from './case.ts';
import { CHUNKS } from './chunks.ts';
import { FIELDS } from './fields.ts';
import { FRAMING } from './framing.ts';
import { HOSTS } from './hosts.ts';
import { PATHS } from './paths.ts';
import { REQUEST_LINES } from './request-line.ts';

export const CORPUS: readonly HostileCase[] = [...REQUEST_LINES, ...PATHS, ...HOSTS, ...FIELDS, ...FRAMING, ...CHUNKS];
