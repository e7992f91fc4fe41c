/** Parses the three forms of an HTTP-date (RFC 9110 §5.6.7); a recipient must accept the two obsolete ones too. Pure. */

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const TIME = String.raw`(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)`;
const FORMS = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(String.raw`^[A-Z][a-z]{2}, (?<day>\d\d) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) ${TIME} GMT$`),
  // Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(String.raw`^[A-Z][a-z]{5,8}, (?<day>\d\d)-(?<month>[A-Z][a-z]{2})-(?<year>\d\d) ${TIME} GMT$`),
  // Sun Nov  6 08:49:37 1994
  new RegExp(String.raw`^[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) ${TIME} (?<year>\d{4})$`),
];

/**
 * Epoch milliseconds of an HTTP-date, which may have blanks around it; undefined for other text. The name of the day is not checked.
 * @param wallNow epoch milliseconds: a two-digit year is at most 50 years after it
 */
export function parseHttpDate(text: string | undefined, wallNow: number): number | undefined {
  for (const form of FORMS) {
    const parts = form.exec(text?.trim() ?? '')?.groups;
    if (parts !== undefined) return toEpochMs(parts, wallNow);
  }
  return undefined;
}

function toEpochMs(parts: Record<string, string | undefined>, wallNow: number): number | undefined {
  const month = MONTHS.indexOf(parts.month ?? '');
  const day = Number(parts.day);
  const hour = Number(parts.hour);
  const minute = Number(parts.minute);
  const second = Number(parts.second);
  // The grammar allows 60 for a leap second, which counts as the next minute.
  if (month < 0 || hour > 23 || minute > 59 || second > 60) return undefined;
  const midnight = new Date(0);
  midnight.setUTCFullYear(resolveYear(parts.year ?? '', wallNow), month, day);
  if (midnight.getUTCMonth() !== month || midnight.getUTCDate() !== day) return undefined;
  return midnight.getTime() + ((hour * 60 + minute) * 60 + second) * 1000;
}

function resolveYear(digits: string, wallNow: number): number {
  const year = Number(digits);
  if (digits.length === 4) return year;
  const thisYear = new Date(wallNow).getUTCFullYear();
  const sameCentury = thisYear - (thisYear % 100) + year;
  return sameCentury > thisYear + 50 ? sameCentury - 100 : sameCentury;
}
