/** Validates the JSON bodies of the simulated API. The fields are invented, since the real payloads are unknown. */
import { isJsonObject, type JsonFields } from '../token/endpoint/json-object.ts';
import { problemResponse, RequestRejection } from './loopback-server.ts';

/** One field that is missing or wrong, by its path, such as `travellers[0].birthDate`. */
export interface FieldFault {
  readonly field: string;
  readonly message: string;
}

export function createInputRejection(faults: readonly FieldFault[]): RequestRejection {
  const names = faults.map(({ field }) => field).join(', ');
  const detail = `Fields are missing or wrong: ${names}.`;
  return new RequestRejection(problemResponse(400, detail, { errors: faults }));
}

export interface QuoteRequest {
  /** Insured days, including the first and the last. */
  readonly days: number;
  readonly travellers: number;
}

export interface PolicyRequest {
  readonly quoteRequestId: string;
}

const TRAVELLERS_MAX = 9;
const TEXT_MAX = 200;
const DAY_MS = 86_400_000;
const REFUSED_CHARACTERS = /[<>\p{Cc}\p{Cs}]/u;
const RECORD_ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

export const RECORD_ID_MESSAGE = 'must be an id of this API, a UUID';

export function isRecordId(text: string): boolean {
  return RECORD_ID.test(text);
}

/** `destination`, `startDate`, `endDate` and `travellers`, each with a `birthDate`. @throws RequestRejection */
export function checkQuoteRequest(input: JsonFields): QuoteRequest {
  const faults: FieldFault[] = [];
  rejectUnknown(input, ['destination', 'startDate', 'endDate', 'travellers'], '', faults);
  readText(input, 'destination', '', faults);
  const start = readDate(input, 'startDate', '', faults);
  const end = readDate(input, 'endDate', '', faults);
  if (end < start) faults.push({ field: 'endDate', message: 'must not be before startDate' });
  const travellers = readTravellers(input, faults);
  if (faults.length > 0) throw createInputRejection(faults);
  return { days: Math.round((end - start) / DAY_MS) + 1, travellers };
}

/** `quoteRequestId`, and a `policyholder` with `name` and `email`. @throws RequestRejection */
export function checkPolicyRequest(input: JsonFields): PolicyRequest {
  const faults: FieldFault[] = [];
  rejectUnknown(input, ['quoteRequestId', 'policyholder'], '', faults);
  const quoteRequestId = readText(input, 'quoteRequestId', '', faults);
  if (quoteRequestId !== '' && !isRecordId(quoteRequestId))
    faults.push({ field: 'quoteRequestId', message: RECORD_ID_MESSAGE });
  const holder = input.policyholder;
  if (isJsonObject(holder)) {
    rejectUnknown(holder, ['name', 'email'], 'policyholder.', faults);
    readText(holder, 'name', 'policyholder.', faults);
    readText(holder, 'email', 'policyholder.', faults);
  } else faults.push({ field: 'policyholder', message: 'must be an object with name and email' });
  if (faults.length > 0) throw createInputRejection(faults);
  return { quoteRequestId };
}

function readTravellers(input: JsonFields, faults: FieldFault[]): number {
  const travellers: unknown = input.travellers;
  if (!Array.isArray(travellers) || travellers.length === 0 || travellers.length > TRAVELLERS_MAX) {
    faults.push({ field: 'travellers', message: `must be an array of 1 to ${TRAVELLERS_MAX.toString()} travellers` });
    return 0;
  }
  travellers.forEach((traveller: unknown, index) => {
    const path = `travellers[${index.toString()}]`;
    if (isJsonObject(traveller)) {
      rejectUnknown(traveller, ['birthDate'], `${path}.`, faults);
      readDate(traveller, 'birthDate', `${path}.`, faults);
    } else faults.push({ field: path, message: 'must be an object with birthDate' });
  });
  return travellers.length;
}

function rejectUnknown(input: JsonFields, known: readonly string[], path: string, faults: FieldFault[]): void {
  for (const name of Object.keys(input))
    if (!known.includes(name)) faults.push({ field: path + name.slice(0, TEXT_MAX), message: 'is not known' });
}

function readText(input: JsonFields, name: string, path: string, faults: FieldFault[]): string {
  const value = input[name];
  if (typeof value === 'string' && value.trim() !== '' && value.length <= TEXT_MAX && !REFUSED_CHARACTERS.test(value))
    return value;
  const message = `must be a text of 1 to ${TEXT_MAX.toString()} characters, without < and > and control characters`;
  faults.push({ field: path + name, message });
  return '';
}

/** Epoch milliseconds of a calendar day; NaN, and a fault, for any other value. */
function readDate(input: JsonFields, name: string, path: string, faults: FieldFault[]): number {
  const value = input[name];
  const at = typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value) ? Date.parse(`${value}T00:00:00Z`) : NaN;
  // Date.parse reads some impossible days, such as 30 February, as a day of the next month.
  if (!Number.isNaN(at) && new Date(at).toISOString().slice(0, 10) === value) return at;
  faults.push({ field: path + name, message: 'must be a date, YYYY-MM-DD' });
  return NaN;
}
