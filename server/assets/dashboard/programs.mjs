// Configuration snippets for clients, limited to the operations that the API key allows.

/**
 * @typedef {object} Target
 * @property {string} base URL of the server
 * @property {string} bucket
 * @property {string} key
 * @property {{accessKeyId: string, secretAccessKey: string} | null} [s3]
 * @property {string[]} [scopes] all without
 * @property {string} [prefix] folder that the key is limited to
 */

/** @param {Target} target @returns {(...scopes: string[]) => boolean} */
const allowed = ({ scopes }) => (...needed) => scopes === undefined || needed.every((scope) => scopes.includes(scope));

/** @param {(string | false)[]} lines */
const text = (lines) => lines.filter((line) => line !== false).join("\n");

/** Folder of the examples: ends in a slash. @param {Target} target */
const folder = ({ prefix = "" }) => (prefix === "" || prefix.endsWith("/") ? prefix || "img/" : `${prefix}/`);

/** @param {Target} target */
const credentials = ({ s3 }) => s3 ?? { accessKeyId: "ACCESS_KEY_ID", secretAccessKey: "SECRET_ACCESS_KEY" };

/** @param {Target} target */
function curl(target) {
  const { base, bucket, key } = target;
  const [may, at, auth] = [allowed(target), `${base}/${bucket}/${folder(target)}`, '-H "Authorization: Bearer $KEY"'];
  return text([
    `KEY=${key}`,
    may("upload") && `curl ${auth} -F file=@cat.jpg ${at}`,
    may("read") && `curl ${auth} -O ${at}cat.jpg`,
    may("read") && `curl ${auth} -o cat.webp "${at}cat.jpg?width=400&format=webp"`,
    may("list") && `curl ${auth} "${base}/api/list-objects?bucketName=${bucket}&prefix=${folder(target)}"`,
    may("delete") && `curl -X DELETE ${auth} ${at}cat.jpg`,
    may("presign") && `curl ${auth} "${base}/api/presigned-url?path=${bucket}/${folder(target)}&expiresAt=600"`,
  ]);
}

/** @param {Target} target */
const javascript = ({ base, bucket, key, ...rest }) => text([
  "// Node, Deno, Bun, browsers. Never ship an API key to a browser: use an upload link there.",
  "const form = new FormData();",
  'form.append("file", file);',
  `const response = await fetch("${base}/${bucket}/${folder({ base, bucket, key, ...rest })}", {`,
  `  method: "POST", headers: { Authorization: "Bearer ${key}" }, body: form,`,
  "});",
  "const { url } = await response.json();",
]);

/** @param {Target} target */
function aws(target) {
  const { accessKeyId, secretAccessKey } = credentials(target);
  const [may, at] = [allowed(target), `s3://${target.bucket}/${folder(target)}`];
  return text([
    `export AWS_ACCESS_KEY_ID=${accessKeyId}`,
    `export AWS_SECRET_ACCESS_KEY=${secretAccessKey}`,
    "export AWS_DEFAULT_REGION=us-east-1",
    `export AWS_ENDPOINT_URL=${target.base}`,
    may("upload") && `aws s3 cp cat.jpg ${at}`,
    may("list") && `aws s3 ls ${at}`,
    may("read") && `aws s3 cp ${at}cat.jpg .`,
    may("delete") && `aws s3 rm ${at}cat.jpg`,
    may("read") && "aws configure set default.s3.signature_version s3v4",
    may("read") && `aws s3 presign ${at}cat.jpg`,
  ]);
}

/** @param {Target} target */
function boto3(target) {
  const { accessKeyId, secretAccessKey } = credentials(target);
  const [may, bucket, file] = [allowed(target), target.bucket, `${folder(target)}cat.jpg`];
  return text([
    "import boto3",
    "from botocore.config import Config",
    "",
    "s3 = boto3.client(",
    `    "s3", endpoint_url="${target.base}", region_name="us-east-1",`,
    `    aws_access_key_id="${accessKeyId}",`,
    `    aws_secret_access_key="${secretAccessKey}",`,
    '    config=Config(signature_version="s3v4"),',
    ")",
    may("upload") && `s3.upload_file("cat.jpg", "${bucket}", "${file}")`,
    may("list") && `print(s3.list_objects_v2(Bucket="${bucket}", Prefix="${folder(target)}")["KeyCount"])`,
    may("read") && `s3.download_file("${bucket}", "${file}", "cat.jpg")`,
    may("delete") && `s3.delete_object(Bucket="${bucket}", Key="${file}")`,
  ]);
}

/** @param {Target} target */
function rclone(target) {
  const { accessKeyId, secretAccessKey } = credentials(target);
  const [may, at] = [allowed(target), `trug:${target.bucket}/${folder(target)}`];
  return text([
    `rclone config create trug s3 provider=Other endpoint=${target.base} \\`,
    `  access_key_id=${accessKeyId} \\`,
    `  secret_access_key=${secretAccessKey} upload_cutoff=64M`,
    may("upload", "read") && `rclone copy photos ${at}`,
    `rclone ls ${at}`,
    may("read") && `rclone copy ${at} photos`,
    may("upload", "read", "delete") && `rclone sync photos ${at}`,
  ]);
}

/** @param {Target} target */
function restic(target) {
  const { accessKeyId, secretAccessKey } = credentials(target);
  return text([
    `export AWS_ACCESS_KEY_ID=${accessKeyId}`,
    `export AWS_SECRET_ACCESS_KEY=${secretAccessKey}`,
    `export RESTIC_REPOSITORY=s3:${target.base}/${target.bucket}/${target.prefix ? folder(target) : ""}restic`,
    "export RESTIC_PASSWORD_FILE=restic-password",
    "restic init",
    "restic backup photos",
  ]);
}

/** @param {Target} target */
const next = ({ base, bucket }) => text([
  '// trug-loader.js. In next.config.js: images: { loader: "custom", loaderFile: "./trug-loader.js" }. The bucket has to be public.',
  '"use client";',
  "export default function trugLoader({ src, width, quality }) {",
  `  return \`${base}/${bucket}/\${src.replace(/^\\//, "")}?width=\${width}&quality=\${quality ?? 80}&format=auto\`;`,
  "}",
]);

/**
 * Clients: name, ID, scopes that the key needs, and the snippet.
 * @type {[string, string, string[], (target: Target) => string][]}
 */
const PROGRAMS = [
  ["curl", "curl", [], curl],
  ["JavaScript", "javascript", ["upload"], javascript],
  ["aws-cli", "aws", [], aws],
  ["boto3", "boto3", [], boto3],
  ["rclone", "rclone", ["list"], rclone],
  ["restic", "restic", ["upload", "read", "list", "delete"], restic],
  ["Next.js", "next", [], next],
];
/** Clients that use S3. */
const S3 = ["aws", "boto3", "rclone", "restic"];

/** The snippets that a key can use. @param {Target} target @returns {{name: string, id: string, text: string}[]} */
export const snippets = (target) => PROGRAMS
  .filter(([, id, needed]) => allowed(target)(...needed) && (target.s3 !== null || !S3.includes(id)))
  .map(([name, id, , write]) => ({ name, id, text: write(target) }));
