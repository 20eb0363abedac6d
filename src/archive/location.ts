import { isAbsolute, join, resolve } from "node:path";
import { EverstepError } from "../domain/errors.ts";
import { VOLUMES_FOLDER } from "../store/embedded/data-folder.ts";

/** The layout of volumes that this program writes. */
export const VOLUME_FORMAT = 1;

const BUCKET = /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/.*)?$/;

/** As volumes have it: what is named is absolute, so that it does not depend on where a program is started. */
export function locationOf(configured: string | undefined, data_folder: string | null): string | null {
  if (configured === undefined) return data_folder === null ? null : VOLUMES_FOLDER;
  if (!configured.includes("://")) return resolve(configured);
  if (BUCKET.test(configured)) return configured.replace(/\/+$/, "");
  throw new EverstepError(
    "config_invalid",
    `EVERSTEP_ARCHIVE=${configured} is neither a folder nor a bucket`,
    "name a folder, or s3://BUCKET/PREFIX",
  );
}

export const isBucket = (location: string): boolean => location.startsWith("s3://");

/** Where its files are now. */
export const folderOf = (location: string, data_folder: string | null): string =>
  isBucket(location) || isAbsolute(location) ? location : join(data_folder ?? ".", location);

/**
 * What LanceDB needs to reach a bucket, from the variables that programs of this kind share. Beside a server of one's own it must be
 * told its address, and that it is not encrypted where it is not.
 */
export function bucketOptions(environment: NodeJS.ProcessEnv): Record<string, string> {
  const endpoint = environment["AWS_ENDPOINT_URL_S3"] ?? environment["AWS_ENDPOINT_URL"] ?? environment["AWS_ENDPOINT"];
  const options = {
    aws_access_key_id: environment["AWS_ACCESS_KEY_ID"],
    aws_secret_access_key: environment["AWS_SECRET_ACCESS_KEY"],
    aws_session_token: environment["AWS_SESSION_TOKEN"],
    aws_region: environment["AWS_REGION"] ?? environment["AWS_DEFAULT_REGION"] ?? "us-east-1",
    aws_endpoint: endpoint,
    allow_http: endpoint?.startsWith("http://") ? "true" : undefined,
    // An upload that hangs is not waited for without end.
    timeout: "60s",
    connect_timeout: "5s",
  };
  return Object.fromEntries(Object.entries(options).filter((entry): entry is [string, string] => !!entry[1]));
}
