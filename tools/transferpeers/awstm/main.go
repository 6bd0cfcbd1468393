// Awstm puts or gets one file with the AWS SDK's transfer manager, which is a library without a
// program of its own.
//
//	awstm put FILE BUCKET KEY
//	awstm get BUCKET KEY FILE
//
// The endpoint is AWS_ENDPOINT_URL, and the credentials come from the environment. AWSTM_JOBS and
// AWSTM_PART_MIB replace the library's defaults. If AWSTM_JOBS is set, `awstm get` fetches ranges
// of bytes instead of the parts in which the file was uploaded.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "awstm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New("use: awstm put FILE BUCKET KEY, or awstm get BUCKET KEY FILE")
	}
	client := transfermanager.New(s3.New(s3.Options{
		BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL")),
		Region:       "us-east-1",
		UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"),
			os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
	}), applyEnvironment)
	if args[0] == "put" {
		return put(ctx, client, args[1], args[2], args[3])
	}
	return get(ctx, client, args[1], args[2], args[3])
}

// applyEnvironment applies the settings from environment variables.
func applyEnvironment(o *transfermanager.Options) {
	if jobs, err := strconv.Atoi(os.Getenv("AWSTM_JOBS")); err == nil {
		o.Concurrency = jobs
		o.GetObjectType = types.GetObjectRanges
	}
	if mib, err := strconv.Atoi(os.Getenv("AWSTM_PART_MIB")); err == nil {
		o.PartSizeBytes = int64(mib) << 20
	}
}

func put(ctx context.Context, client *transfermanager.Client, file, bucket, key string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = client.UploadObject(ctx, &transfermanager.UploadObjectInput{Bucket: &bucket, Key: &key, Body: f})
	return err
}

func get(ctx context.Context, client *transfermanager.Client, bucket, key, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = client.DownloadObject(ctx, &transfermanager.DownloadObjectInput{Bucket: &bucket, Key: &key, WriterAt: f})
	return errors.Join(err, f.Close())
}
